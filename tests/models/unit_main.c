/* SPDX-License-Identifier: BSD-2-Clause */
/* Linked into a unit test that has no main() of its own. */
#include "models/unit.h"

int main(void)
{
	return !has_unit_tests() || run_unit_tests();
}
