%% SPDX-License-Identifier: BSD-2-Clause
%% spin:main([SECONDS]): calls, converts, sorts.
-module(spin).
-export([main/1]).

f(N) when N < 2 -> N;
f(N) -> f(N - 1) + f(N - 2).

loop(End) ->
    case erlang:monotonic_time(millisecond) < End of
        true ->
            f(20),
            lists:sort([integer_to_list(I) || I <- lists:seq(1, 1000)]),
            loop(End);
        false -> ok
    end.

main([Seconds]) ->
    loop(erlang:monotonic_time(millisecond) + round(1000 * list_to_float(Seconds))),
    halt().
