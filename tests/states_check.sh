#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lnet_states(7) is what the tables of the state machines say.
set -uo pipefail
page=${srcdir:-.}/man/man7/lnet_states.7

tests/states | diff -u "$page" - || {
	echo "$page is not what the tables say: make states"
	exit 1
}
