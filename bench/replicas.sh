#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about several servers of one service: one that is killed while others are
# left, first replies, and the balance over servers of unequal speed.
# usage: bench/replicas.sh BUILD RUNS
# BUILD is where bench/replicas was built. Says NAME|UNIT|AIM|MEDIAN|MIN|MAX for each row.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$top/bench/rows.sh" || exit
set -euo pipefail
build=$1 runs=$2
declare -A all=()

for ((i = 0; i < runs; i++)); do
	while read -r key v; do
		all[$key]+=" $v"
	done < <(timeout 120 "$build/bench/replicas" 2>/dev/null)
done
what="one of three servers killed, 16 calls under way"
# shellcheck disable=SC2086 # numbers
{
	sum "$what: calls lost" calls 0 ${all[lost]}
	sum "$what: calls that went on to another server" calls "" ${all[moved]}
	sum "$what: the longest of the calls" us "<= 200000" ${all[longest]}
	sum "the longest before that" us "" ${all[quiet]}
	sum "first reply of a server that is not connected yet, its NID known" us "" ${all[known]}
	sum "the same, by a name that is looked up in a file" us "" ${all[named]}
	what="servers of 4, 8 and 16 ms a call, 16 calls under way"
	sum "$what, least: part of what they can do" % "" ${all[least]}
	sum "$what, least: calls at the first one" % "" ${all[least.1]}
	sum "$what, least: calls at the second one" % "" ${all[least.2]}
	sum "$what, least: calls at the third one" % "" ${all[least.3]}
	sum "$what, in turns: part of what they can do" % "" ${all[turns]}
}
