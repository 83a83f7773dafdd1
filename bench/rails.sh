#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about rails. usage: bench/rails.sh BUILD RUNS
# BUILD is where tools/ was built. Says NAME|UNIT|AIM|MEDIAN|MIN|MAX for each row.
#
# Two hosts, network namespaces, on two rails that are shaped to 1 Gbit/s each way. A
# client reads bulk data from the server over both rails. One rail is lost for 3 s.
# The rails are of two LNet networks or of one, where messages may also go from a NID on
# one rail to a NID on the other; and of one on one switch, so that these go all the way
# by the interfaces that the NIDs are of.
# rpcping says each 20 ms what was read; the rate is that of 100 ms.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$top/tests/net/hosts.sh" || exit
. "$top/bench/rows.sh" || exit
hosts_enter bash "$0" "$@" || exit 77
set -euo pipefail
build=$1 runs=$2
dir=$(mktemp -d)
pids=()

# Those of the hosts live as long as this program: they are not waited for.
clean_up() {
	local pid

	for pid in "${pids[@]}"; do
		kill -KILL "$pid" && wait "$pid" || true
	done 2>/dev/null
	rm -rf "$dir"
}
trap clean_up EXIT

# ---- hosts and nodes ----

# Each end of each cable sends at that rate.
hosts_pair
rate=(root tbf rate 1gbit burst 256k latency 20ms)
for name in client server; do
	for rail in 0 1; do
		on $name tc qdisc add dev eth$rail "${rate[@]}"
		tc qdisc add dev $name$rail "${rate[@]}"
	done
done

# serve CONF: instead of the server that there was
server=
serve() {
	local at

	if [[ $server ]]; then
		kill $server
		wait $server
		rm "$dir/ready"
	fi
	at server
	mkfifo "$dir/ready"
	"${at[@]}" "$build/tools/bin/rpcserve" --config "$dir/$1.conf" --port 988 \
		--accept all --socket "$dir/server.sock" --log err \
		>"$dir/ready" &
	server=$!
	pids+=($server)
	read -r _ <"$dir/ready"
}

# read_bulk CONF SIZE OPTION...
read_bulk() {
	local at

	at client
	exec "${at[@]}" "$build/tools/bin/rpcping" --config "$dir/$1.conf" \
		--port 988 --log err --bulk-read "$2" --deadline 60 \
		--grace 60 --json "${@:3}" 10.9.0.2@tcp
}

# ---- numbers ----

# stamp: lines, each with the time at which it came, in us
stamp() {
	local line

	while read -r line; do
		echo "${EPOCHREALTIME/./} $line"
	done
}

# back_after TIME LIVE: ms from then until 100 ms bring at least 90 % of what one rail
# does again, which is the median of what they bring from 1.25 to 2.5 s later; 0 if
# they never bring less within a second.
back_after() {
	awk -v t="$1" '
		$5 ~ /^calls/ { rate[++n] = $4; at[n] = $1 }
		END {
			for (i = 3; i <= n - 2; i++) {
				for (j = i - 2; j <= i + 2; j++)
					mean[i] += rate[j] / 5
				if (at[i] > t + 1250000 && at[i] < t + 2500000)
					one[++m] = mean[i]
			}
			enough = 0.9 * median(one, m)
			for (i = 3; at[i] < t || mean[i] >= enough; i++)
				if (i > n - 3 || at[i] > t + 1000000) {
					print 0
					exit
				}
			while (i < n - 2 && mean[i] < enough)
				i++
			printf "%.0f\n", (at[i] - t) / 1000
		}
		function median(a, n,   i, j, v) {
			for (i = 2; i <= n; i++) {
				v = a[i]
				for (j = i - 1; j > 0 && a[j] > v; j--)
					a[j + 1] = a[j]
				a[j + 1] = v
			}
			return a[int((n + 1) / 2)]
		}' "$2"
}

# ---- what is measured ----

# used_after: ms until the client has received a MiB on rail 1
used_after() {
	local from start=${EPOCHREALTIME/./}

	from=$(rail_bytes client 1)
	while (($(rail_bytes client 1) - from < 1 << 20)); do
		sleep 0.002
	done
	echo $(((${EPOCHREALTIME/./} - start) / 1000))
}

# lose_once TAKE GIVE: to $back, $used, $longest and $lost, one more value each
lose_once() {
	local pid lost_at

	(read_bulk $both 64k --inflight 32 --time 1h --live --interval 0.02) \
		>"$dir/out" 2> >(stamp >"$dir/live") </dev/null &
	pid=$!
	pids+=($pid)
	sleep 1.5
	lost_at=${EPOCHREALTIME/./}
	$1
	sleep 3
	$2
	used+=("$(used_after)")
	sleep 0.5
	kill -INT $pid
	wait $pid || true
	back+=("$(back_after "$lost_at" "$dir/live")")
	longest+=("$(awk -v us="$(value max "$dir/out")" \
		'BEGIN { printf "%.0f", us / 1000 }')")
	lost+=("$(value lost "$dir/out")")
}

# lose WHAT AIM TAKE GIVE
lose() {
	local back=() used=() longest=() lost=() i

	for ((i = 0; i < runs; i++)); do
		lose_once "$3" "$4"
	done
	sum "$1: at 90 % of one rail again after" ms "$2" "${back[@]}"
	sum "$1: longest call" ms "" "${longest[@]}"
	sum "$1: calls lost" calls 0 "${lost[@]}"
	sum "$1: given back, used after" ms "" "${used[@]}"
}

# rate CONF: bytes a second
rate() {
	(read_bulk "$1" 1M --inflight 16 --time 3 --warmup 0.5) >"$dir/out"
	value bytes_per_s "$dir/out"
}

two_to_one() {
	local ratios=() i one two

	for ((i = 0; i < runs; i++)); do
		one=$(rate one)
		two=$(rate two)
		ratios+=("$(awk "BEGIN { printf \"%.2f\", $two / $one }")")
	done
	sum "reads of 1 MiB, two rails to one" ratio "at least 1.9" \
		"${ratios[@]}"
}

peer_ni() {
	"$build/tools/bin/lnetctl" --socket "$dir/server.sock" net "$1" \
		--net ${nets[1]} --if eth1
}
peer_ni_del() { peer_ni del; }
peer_ni_add() { peer_ni add; }

# lose_each TEXT NET NET: all that may befall rail 1, with both rails of these networks
lose_each() {
	local both=both nets=("${@:2}")

	rails_conf "${nets[@]}" >"$dir/both.conf"
	serve both
	lose "$1: client's link down" "at most 50" client_link_down \
		client_link_up
	lose "$1: server's link down" "at most 50" server_link_down \
		server_link_up
	lose "$1: client's address removed" "at most 50" client_address_del \
		client_address_add
	lose "$1: server's address removed" "at most 50" server_address_del \
		server_address_add
	lose "$1: rail silent" "at most 1000" lose_both wire_whole
	lose "$1: server's interface deleted" "" peer_ni_del peer_ni_add
}

rails_conf tcp >"$dir/one.conf"
rails_conf tcp tcp >"$dir/two.conf"
serve two
two_to_one
lose_each "two networks" tcp tcp1
lose_each "one network" tcp tcp
hosts_join
lose_each "one network, one switch" tcp tcp
