#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: bench/secure.sh BUILD RUNS
# What handshakes and sealed records take, beside what OpenSSL's own "speed" says of the
# signatures and ciphers in them, in turn; for bench/run, whose build has the programs.
# Lines: NAME|UNIT|AIM|MEDIAN|MIN|MAX. On one pinned core.
set -euo pipefail
build=$1 runs=$2
secure=$build/bench/secure
pin="taskset -c $(($(nproc) - 1))"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{
	"$build/tools/bin/ulnet-keys" --dir "$dir" authority bench
	"$build/tools/bin/ulnet-keys" --dir "$dir" node a
	"$build/tools/bin/ulnet-keys" --dir "$dir" cluster bench
} >/dev/null

# row NAME UNIT AIM FILE: of the numbers in FILE
row() {
	sort -n "$4" | awk -v row="$1|$2|$3" '{ v[NR] = $1 }
		END { print row "|" v[int((NR + 1) / 2)] "|" v[1] "|" v[NR] }'
}

# speed ALGORITHM SIZE: bytes/s
speed() {
	$pin openssl speed -mr -seconds 1 -bytes "$2" -evp "$1" 2>/dev/null |
		sed -n 's/^+F:.*://p'
}

# us that OpenSSL takes for what both sides of a full handshake do: each signs once,
# verifies two signatures, makes a key for the exchange, and uses it.
handshake_bound() {
	$pin openssl speed -mr -seconds 1 ecdsap256 ecdhx25519 2>/dev/null |
		awk -F: '/^\+F4:/ { sign = 1 / $4; verify = 1 / $5 }
			/^\+F5:/ { exchange = 1 / $4 }
			END { printf "%.1f\n", 1e6 * (2 * sign + 4 * verify + 4 * exchange) }'
}

for ((i = 0; i < runs; i++)); do
	for kind in full resumed cluster; do
		$pin "$secure" handshake "$dir" $kind 300 >"$dir/said"
		sed -n 's/^us //p' "$dir/said" | tee "$dir/last-$kind" >>"$dir/$kind"
		sed -n 's/^server-us //p' "$dir/said" >>"$dir/$kind-server"
		awk '/^to-/ { n += $2 } END { print n }' "$dir/said" >>"$dir/$kind-bytes"
	done
	$pin "$secure" handshake "$dir" bare 300 | sed -n 's/^us //p' |
		tee "$dir/last-bare" >>"$dir/bare"
	awk -v us="$(cat "$dir/last-resumed")" '{ printf "%.2f\n", us / $1 }' \
		"$dir/last-bare" >>"$dir/resumed-ratio"
	handshake_bound | awk -v us="$(cat "$dir/last-full")" \
		'{ print; printf "%.2f\n", us / $1 >ratio }' ratio="$dir/r$i" >>"$dir/bound"
	cat "$dir/r$i" >>"$dir/full-ratio"
done
row "handshake, full, both sides" us "<= 1500" "$dir/full"
row "the same, the server alone" us "" "$dir/full-server"
row "the same, to OpenSSL's signatures and exchanges" ratio "" "$dir/full-ratio"
row "the same, both ways" bytes "" "$dir/full-bytes"
row "handshake, resumed, both sides" us "<= 300" "$dir/resumed"
row "the same, by OpenSSL alone" us "" "$dir/bare"
row "handshake, resumed, to OpenSSL alone" ratio "" "$dir/resumed-ratio"
row "handshake, resumed, the server alone" us "" "$dir/resumed-server"
row "the same, both ways" bytes "" "$dir/resumed-bytes"
row "handshake, a cluster's key, both sides" us "" "$dir/cluster"
row "the same, the server alone" us "" "$dir/cluster-server"

for cipher in aes-128-gcm chacha20-poly1305; do
	for size in 64 1024 16384 1048576; do
		at=$dir/$cipher-$size
		for ((i = 0; i < runs; i++)); do
			bytes=$(speed $cipher $size)
			$pin "$secure" record $cipher $size 0.5 >"$dir/said"
			awk -v speed="$bytes" -v size=$size -v at="$at" '
				{ v[$1] = $2; print $2 >>(at "-" $1) }
				END {
					print 1e9 * size / speed >>(at "-bound")
					printf "%.2f\n", 1e9 * size / speed / v["privacy-seal"] >>(at "-ratio")
				}' "$dir/said"
		done
		row "$cipher, $size B: sealed, integrity" ns "" "$at-integrity-seal"
		row "$cipher, $size B: sealed, privacy" ns "" "$at-privacy-seal"
		row "$cipher, $size B: opened, privacy" ns "" "$at-privacy-open"
		row "$cipher, $size B: openssl speed's time to that to seal" ratio "" \
			"$at-ratio"
	done
done
"$secure" memory 1000 >"$dir/memory"
for what in alone pool; do
	sed -n "s/^$what-bytes //p" "$dir/memory" >"$dir/memory-$what"
done
row "keys of a connection, both directions" bytes "" "$dir/memory-alone"
row "the same, of 1,000 that share contexts" bytes "" "$dir/memory-pool"
for ((i = 0; i < runs; i++)); do
	none=$("$build/bench/proven" 1000 none) keys=$("$build/bench/proven" 1000 "$dir")
	echo $((${keys#bytes } - ${none#bytes }))
done >"$dir/proven"
row "a server's memory for an active client, more than without keys" bytes "<= 3072" "$dir/proven"
"$secure" tickets "$dir" 1000 | sed -n 's/^bytes //p' >"$dir/tickets"
row "a client that may come back by a ticket" bytes "<= 3072" "$dir/tickets"
