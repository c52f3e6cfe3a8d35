-- SPDX-License-Identifier: BSD-2-Clause
-- spin.lua SECONDS: calls, converts, sorts.
local function f(n)
	if n < 2 then return n end
	return f(n - 1) + f(n - 2)
end

local stop = os.clock() + tonumber(arg[1])
while os.clock() < stop do
	f(20)
	local words = {}
	for i = 1, 1000 do words[i] = tostring(i) end
	table.sort(words)
end
