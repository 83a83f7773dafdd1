#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The dissector for Wireshark, run by tshark on the tapes of tests/wire/tcp: what
# it shows is what ulnet's own codec reads, however the stream is cut, and wrong
# bytes do it no harm (requirement H8).
. "${srcdir:-.}/tests/tools/lib.sh" || exit

src=${srcdir:-.} lua=${srcdir:-.}/tools/wireshark/ulnet.lua
tape_pcap=$PWD/tests/tools/tape_pcap

command -v tshark >/dev/null || skip "no tshark (Debian: tshark)"
export HOME=$dir XDG_CONFIG_HOME=$dir # nobody's own settings
shark() { # CAPTURE ARGUMENT...
	tshark -r "$1" -X "lua_script:$lua" "${@:2}" 2>"$dir/shark.err"
}
tshark -v 2>/dev/null | grep -qi 'with lua' || skip "this tshark has no Lua"

fields=(request_version target_nid hello_version hello_src_nid hello_dst_nid
	hello_src_pid src_incarnation conn_type ksm_type zc_cookie ack_cookie
	src_nid dest_nid src_pid type payload_length match_bits portal offset
	sink_length mlength info_features info_nid info_status info_sequence)

# Lines of those fields, of each packet that a frame ends in.
dissect() { # CAPTURE
	local wanted=() name

	for name in "${fields[@]}"; do
		wanted+=(-e "ulnet.$name")
	done
	shark "$1" -Y 'ulnet.request or ulnet.hello or ulnet.ksm_type' \
		-T fields -E separator=';' "${wanted[@]}"
}

# As tape_pcap prints them.
as_fields() {
	awk -F';' '
		function or_none(x) { return x == "" ? "-" : x }
		$1 != "" { print "request", $1, $2; next }
		$3 != "" { print "hello", $3, $4, $5, $6, $7, $8; next }
		$9 == "0x000000c0" { print "noop", $10, $11; next }
		{ print "lnet", $10, $11, $12, $13, $14, $15, $16, or_none($17),
			or_none($18), or_none($19), or_none($20 $21) }'
}

# Values of each field, in their order, whatever packet they are in.
by_field() {
	awk -F';' '{ for (i = 1; i <= NF; i++) if ($i != "") v[i] = v[i] "," $i }
		END { for (i = 1; i <= 25; i++) print i v[i] }'
}

capture() { # TAPE SEGMENT [SPOIL]
	run 0 "$tape_pcap" "$@"
	silent err
	mv "$dir/out" "$dir/capture"
}

# ---- each frame is read as ulnet reads it ----

for tape in "$src"/tests/wire/tcp/*.tape; do
	tape=$(basename "$tape" .tape)
	capture "$tape" 0
	run 0 "$tape_pcap" "$tape" fields
	dissect "$dir/capture" >"$dir/shown"
	as_fields <"$dir/shown" >"$dir/shown.fields"
	ran="tshark, $tape"
	same out <"$dir/shown.fields"
	expect "$tape: frames" test -s "$dir/out"
	by_field <"$dir/shown" >"$dir/by_field.$tape"
done

# ---- cut anywhere, and several in one segment ----

for cut in "discover 7" "discover 60000" "large 33" "rpc 1" "two-nis 1000" \
	"bulk 1460"; do
	# shellcheck disable=SC2086
	capture $cut
	dissect "$dir/capture" | by_field >"$dir/out"
	ran="tshark, $cut bytes to a segment"
	same out <"$dir/by_field.${cut% *}"
done

# ---- ping information ----

# The first REPLY of two-nis.tape, and of large.tape.
info() { # TAPE
	capture "$1" 0
	shark "$dir/capture" -Y 'ulnet.type == 3 and ulnet.info' -T fields \
		-E separator=';' -e ulnet.info_features -e ulnet.info_nnis \
		-e ulnet.info_nid -e ulnet.info_status |
		head -n 1 >"$dir/out"
	ran="tshark, ping information of $1"
}
info discover
same out <<\.
0x0000001e;2;0@lo,10.77.0.2@tcp;0x15aac0de
.
info large
same out <<\.
0x0000007e;1;0@lo,fd77::2@tcp;0x15aac0de
.

# ---- RPC ----

capture rpc 0
shark "$dir/capture" -Y ulrpc -T fields -E separator=';' -e ulrpc.crc.good \
	-e ulrpc.requests.connection -e ulrpc.call.xid -e ulrpc.call.method \
	-e ulrpc.call.timeout -e ulrpc.reply.xid -e ulrpc.reply.queue \
	-e ulrpc.requests.bodies -e ulrpc.replies.bodies \
	-e ulrpc.keepalive.sequence >"$dir/out"
ran="tshark, rpc"
same out <<\.
1;0x1122334455667788;42;0x7cd169a6;1000000;;;68656c6c6f;;
1;;;;;42;150;;68656c6c6f;
1;;;;;;;;;7
.
shark "$dir/capture" -Y ulrpc -T fields -e _ws.col.Info >"$dir/out"
same out <<\.
PUT, Requests, xid 42
PUT, Replies, xid 42
PUT, Keepalive
.

# Of sealed messages, what can be read.
capture sealed 0
shark "$dir/capture" -Y ulrpc -T fields -E separator=';' \
	-e ulrpc.sealed.protection -e ulrpc.sealed.generation \
	-e ulrpc.sealed.handle -e ulrpc.sealed.counter -e ulrpc.call.xid \
	-e ulrpc.requests.bodies -e _ws.col.Info >"$dir/out"
ran="tshark, sealed"
same out <<\.
1;2;0x1122334455667788;5;42;68656c6c6f;PUT, Requests, xid 42
2;2;0x1122334455667788;6;;;PUT, Requests, encrypted
.

# Its tables are those of wire.proto: message, number, name, type.
awk '$1 == "message" { message = $2 }
	/^}/ { message = "" }
	message != "" && $0 ~ /=/ {
		sub(/^ *repeated */, ""); sub(/;.*/, "")
		print message, $4, $2, $1
	}' "$src/rpc/wire/wire.proto" >"$dir/proto"
awk '/^local messages/ { on = 1 } /^}/ { on = 0 }
	on && /= {$/ { message = $1 }
	on && /^\t\t\[/ {
		gsub(/[][{}",=]/, " ")
		print message, $1, $2, $3
	}' "$lua" >"$dir/out"
ran="messages of ulnet.lua"
same out <"$dir/proto"
awk '/^enum/ { on = $2 == "Status" } /^}/ { on = 0 } on && / = / {
	sub(/;.*/, ""); print $3, $1 }' "$src/rpc/wire/wire.proto" >"$dir/proto"
awk '/^local statuses/ { on = 1 } /^}/ { on = 0 }
	on && /\] =/ { gsub(/[][",=]/, " "); print $1, $2 }' "$lua" >"$dir/out"
ran="statuses of ulnet.lua"
same out <"$dir/proto"
expect "wire.proto has statuses" test -s "$dir/out"

# ---- wrong bytes ----

for tape in discover large rpc; do
	for ((seed = 1; seed <= 8; seed++)); do
		capture $tape $((seed % 2 * 700)) $seed
		ran="tshark, $tape spoilt by $seed"
		checks=$((checks + 1))
		shark "$dir/capture" -V >"$dir/out" ||
			complain "$ran: exit status $?"
		! grep -i 'lua error' "$dir/out" "$dir/shark.err" ||
			complain "$ran: an error of the script"
		has out 'LNet over TCP'
	done
done

# Garbage from the first byte on is shown as such.
printf '%b' 'E\0\0\x30\0\0\0\0\x40\x06\0\0\x0a\0\0\x01\x0a\0\0\x02' \
	'\x03\xff\x03\xdc\0\0\0\1\0\0\0\1\x50\x18\xff\xff\0\0\0\0' \
	'garbage.' >"$dir/packet"
{
	head -c 24 "$dir/capture" # pcap's own header
	printf '%b' '\0\0\0\0\0\0\0\0\x30\0\0\0\x30\0\0\0'
	cat "$dir/packet"
} >"$dir/garbage"
shark "$dir/garbage" -V >"$dir/out"
ran="tshark, garbage"
has out 'not the beginning of a frame'

finish
