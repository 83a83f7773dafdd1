#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: run_test.sh PROGRAM [ARGUMENT...]
# What make calls for every test. A test that hangs fails: this limit is the only one,
# and so long that no test reaches it because the machine is busy. Where there is a folder
# times/, the time that it took is kept there: "SECONDS TEST" in TEST.s, and the same for
# each test in a unit test's program in TEST.units ("/" is "+" in these names). $RUN_UNDER
# is a command that the program is run by, as setarch or valgrind.
set -u
program=$1
[[ $program != *.sh ]] || set -- bash "$@"
name=${program#./} name=${name#"${srcdir:-.}"/}
kept=times/${name//\//+}

if [[ $name == tests/unit/* ]]; then
	set -- "$@" --timeout 600 # for each test in it
	[ ! -d times ] || export UNIT_TIMES=$kept.units
fi
since=${EPOCHREALTIME:-0}
# shellcheck disable=SC2086
timeout -k 10 "${TEST_SECONDS:-1500}" ${RUN_UNDER:-} "$@"
status=$?
[ ! -d times ] || awk -v a="$since" -v b="${EPOCHREALTIME:-0}" -v name="$name" \
	'BEGIN { printf "%.1f %s\n", b - a, name }' >"$kept.s"
exit $status
