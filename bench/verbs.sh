#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Calls over Soft-RoCE, to what the devices do without ulnet. usage:
#
#	tests/vm/vm-run --rdma rxe -- bench/verbs.sh BUILD RUNS
#
# BUILD is where tools/ was built. Says NAME|UNIT|AIM|MEDIAN|MIN|MAX for each row. The
# raw bounds are perftest's, in the same run, one after the other: ib_send_lat,
# which sleeps as the nodes do, ib_write_lat and ib_write_bw, which do not. An emulated
# machine is slow, and its devices are software: only ratios mean anything.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$top/bench/rows.sh"
build=$1 runs=$2
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT

# raw COLUMN PROGRAM ARGUMENT...: that of perftest's last line of numbers
raw() {
	"$2" -d rxea -x 1 -F "${@:3}" >/dev/null 2>&1 &
	sleep 2 # it does not say when it listens
	"$2" -d rxeb -x 1 -F "${@:3}" 10.77.9.1 |
		awk -v column="$1" '/^ *[0-9]+ +[0-9]+ / { v = $column }
			END { print v }'
	wait $!
}

# ping NAME ARGUMENT...: that of rpcping's numbers
ping() {
	"$build/tools/bin/rpcping" --net 'o2ib(10.77.9.2)' --deadline 60 --json \
		"${@:2}" 10.77.9.1@o2ib >"$dir/json" 2>"$dir/err"
	value "$1" "$dir/json"
}

# rate ARGUMENT...: MiB/s of bulk, as perftest has them
rate() {
	awk -v b="$(ping bytes_per_s --count 100 --inflight 4 "$@")" \
		'BEGIN { print b / 1048576 }'
}

quotient() {
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f\n", a / b }'
}

"$build/tools/bin/rpcserve" --net 'o2ib(10.77.9.1)' >"$dir/serve" 2>&1 &
until grep -q ready "$dir/serve"; do
	sleep 0.1
done
ping seconds --count 200 >/dev/null

calls=() writes=() reads=() sends=() small=() large=()
for ((i = 0; i < runs; i++)); do
	# One way, us.
	send=$(raw 5 ib_send_lat -e -s 64 -n 1000)
	call=$(ping p50 --count 1000 --size 64)
	sends+=("$send")
	calls+=("$(quotient "$call" "$(quotient "$send" 0.5)")")
	# The service writes them to the client.
	write=$(raw 5 ib_write_lat -s 8192 -n 100)
	small+=("$(quotient "$(ping p50 --count 100 --bulk-read 8k)" "$write")")
	write=$(raw 5 ib_write_lat -s 65536 -n 100)
	large+=("$(quotient "$(ping p50 --count 100 --bulk-read 64k)" "$write")")
	write=$(raw 4 ib_write_bw -s 1048576 -n 200)
	writes+=("$(quotient "$(rate --bulk-read 1M)" "$write")")
	reads+=("$(quotient "$(rate --bulk-write 1M)" "$write")")
done
sum "ib_send_lat, 64 bytes, one way" us "" "${sends[@]}"
sum "call of 64 bytes, to twice ib_send_lat" ratio "" "${calls[@]}"
sum "call with 8 KiB to the client, to ib_write_lat" ratio "" "${small[@]}"
sum "call with 64 KiB to the client, to ib_write_lat" ratio "" "${large[@]}"
sum "bulk of 1 MiB to the client, to ib_write_bw" ratio "" "${writes[@]}"
sum "bulk of 1 MiB to the service, to ib_write_bw" ratio "" "${reads[@]}"
