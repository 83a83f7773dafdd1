#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about several servers of one service: one that is killed while others are
# left, first replies, and the balance over servers of unequal speed.
# usage: bench/replicas.sh BUILD RUNS [names]
# BUILD is where bench/replicas was built. Says NAME|UNIT|AIM|MEDIAN|MIN|MAX for each row. With
# "names" it says "dns US" and "etcd US" for each run: first replies by names, which need a
# network and mounts of its own, dnsmasq and etcd. Without these there are no such rows.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$top/bench/rows.sh" || exit
set -euo pipefail
build=$1 runs=$2
declare -A all=()
PATH=$PATH:/usr/sbin

# ready FILE PATTERN: until a line of the file matches
ready() {
	timeout 60 grep -qE "$2" <(tail -n +1 -f "$1")
}

# us until the first reply by this name
first() { # TARGET
	timeout 60 "$build/bench/replicas" first "$1" 2>/dev/null | sed 's/first //'
}

# In a network of its own.
first_by_names() {
	dir=$(mktemp -d)
	trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$dir"' EXIT
	ip link set lo up
	echo 'nameserver 127.0.0.1' >"$dir/resolv.conf"
	mount --bind "$dir/resolv.conf" /etc/resolv.conf
	: >"$dir/log"
	dnsmasq --no-daemon --conf-file=/dev/null --no-resolv --no-hosts --pid-file= \
		--listen-address=127.0.0.1 --bind-interfaces --local=/example/ \
		--host-record=bench.example,127.0.25.2 --log-facility="$dir/log" &
	etcd --data-dir "$dir/etcd" --logger zap --log-outputs stderr 2>"$dir/etcd.log" &
	ready "$dir/log" 'started, version'
	ready "$dir/etcd.log" 'serving (insecure )?client (requests|traffic)'
	for ((i = 0; i < runs; i++)); do
		for target in dns:///bench.example etcd://127.0.0.1:2379/bench; do
			echo "${target%%:*} $(first $target)"
		done
	done
}

if [ "${3:-}" = names ]; then
	first_by_names
	exit
fi
for ((i = 0; i < runs; i++)); do
	while read -r key v; do
		all[$key]+=" $v"
	done < <(timeout 120 "$build/bench/replicas" 2>/dev/null)
done
# A folder of its own: the kernel takes long to watch one in which there is much.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo 127.0.25.2 >"$folder/list"
for ((i = 0; i < runs; i++)); do
	all[known]+=" $(first 127.0.25.2@tcp)"
	all[named]+=" $(first "file://$folder/list")"
done
while read -r key v; do
	all[$key]+=" $v"
done < <(type dnsmasq etcd ip >/dev/null 2>&1 &&
	timeout 300 unshare --net --mount bash "$0" "$build" "$runs" names 2>/dev/null)
what="one of three servers killed, 16 calls under way"
# shellcheck disable=SC2086 # numbers
{
	sum "$what: calls lost" calls 0 ${all[lost]}
	sum "$what: calls that went on to another server" calls "" ${all[moved]}
	sum "$what: the longest of the calls" us "<= 200000" ${all[longest]}
	sum "the longest before that" us "" ${all[quiet]}
	sum "first reply of a server that is not connected yet, its NID known" us "" ${all[known]}
	sum "the same, by a name that is looked up in a file" us "" ${all[named]}
	[ -z "${all[dns]:-}" ] ||
		sum "the same, by a name in DNS" us "" ${all[dns]}
	[ -z "${all[etcd]:-}" ] ||
		sum "the same, by a name in etcd" us "" ${all[etcd]}
	what="servers of 4, 8 and 16 ms a call, 16 calls under way"
	sum "$what, least: part of what they can do" % "" ${all[least]}
	sum "$what, least: calls at the first one" % "" ${all[least.1]}
	sum "$what, least: calls at the second one" % "" ${all[least.2]}
	sum "$what, least: calls at the third one" % "" ${all[least.3]}
	sum "$what, in turns: part of what they can do" % "" ${all[turns]}
}
