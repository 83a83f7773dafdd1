#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: scripts/stress.sh BUILD RUNS [TEST...]
# Runs tests that use real time, RUNS times each, where little time is left for them: on
# one processor, beside eight loops that never wait. None may fail. BUILD is a folder
# that ./check has built in, such as build/release; TEST is a name as make knows it,
# such as tests/tools/tcp.sh. By default all tests of programs, threads and LNDs are
# run; with build/tsan only those of threads, with build/asan only those of LNDs.
set -euo pipefail

[ $# -ge 2 ] && [ -e "$1/Makefile" ] && [ "$2" -gt 0 ] || {
	sed -n 's/^# //; /^usage/,/^set/{ /^set/d; p }' "$0" >&2
	exit 2
}
build=$(cd "$1" && pwd) runs=$2 loops=()
shift 2

tests=("$@") programs=program-tests kinds=(program thread lnd)
case $build in
*/tsan) programs=generated kinds=(thread) ;;
*/asan) programs=generated kinds=(lnd) ;;
esac
if [ $# = 0 ]; then
	for kind in "${kinds[@]}"; do
		tests+=($(make -C "$build" -s --no-print-directory print-$kind-tests))
	done
fi
make -C "$build" -j"$(nproc)" $programs >"$build/stress.log"
# shellcheck disable=SC2046
make -C "$build" -j"$(nproc)" generated \
	$(printf '%s\n' "${tests[@]}" | grep -v '\.sh$') >"$build/stress.log"

end_loops() {
	kill "${loops[@]}" 2>/dev/null || true
}
trap end_loops EXIT
for _ in {1..8}; do
	taskset -c 0 bash -c 'while :; do :; done' &
	loops+=($!)
done
bad=0
for ((run = 1; run <= runs; run++)); do
	taskset -c 0 make -C "$build" -k -j4 check-TESTS TESTS="${tests[*]}" \
		>"$build/stress.log" 2>&1 || bad=$((bad + 1))
	echo "run $run of $runs:" \
		"$(sed -nE 's/^# (TOTAL|PASS|SKIP|FAIL|ERROR): +/\1 /p' \
			"$build/stress.log" | paste -sd ' ')"
	# The logs of those that failed are kept from the next run.
	while read -r test; do
		mkdir -p "$build/stress/$run/${test%/*}"
		cp "$build/${test%.sh}.log" "$build/stress/$run/${test%.sh}.log"
		echo "FAIL $test: $build/stress/$run/${test%.sh}.log"
	done < <(sed -n 's/^FAIL: //p' "$build/stress.log")
done
[ $bad = 0 ]
