#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about a server that is killed while others of its service are left.
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
}
