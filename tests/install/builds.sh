#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: builds.sh WITHOUT
# Programs of this build, in the current directory, which has TLS, and of the build
# WITHOUT, which has none, call each other: as far as their settings allow, and if they
# do not, the call is refused at once, and not at its deadline of an hour.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
without=$(realpath "$1") || exit
with=$PWD
unset LD_LIBRARY_PATH
free_port port || skip "perl cannot find a free port"
keys=$dir/keys

# of BUILD PROGRAM ARGUMENT...
of() {
	LD_LIBRARY_PATH=$1/.libs "$1/tools/bin/$2" "${@:3}"
}

serve() { # BUILD ARGUMENT...
	export LD_LIBRARY_PATH=$1/.libs
	rpcserve=$1/tools/bin/rpcserve
	need_rpcserve server --net 'tcp(127.0.0.2)' --port "$port" "${@:2}"
	unset LD_LIBRARY_PATH
}

ping() { # STATUS BUILD ARGUMENT...
	run "$1" of "$2" rpcping --net 'tcp(127.0.0.1)' --port "$port" \
		--count 20 --inflight 4 --verify --deadline 1h "${@:3}" \
		127.0.0.2@tcp
}

# all_plain: each kind of call, by both.
all_plain() {
	for build in "$with" "$without"; do
		ping 0 "$build"
		ping 0 "$build" --checksum --bulk-read 3M
		ping 0 "$build" --checksum --bulk-write 3M
	done
}

expect "$without has no TLS" test ! -e "$without/tools/bin/ulnet-keys"
for name in "authority site" "node a" "node b"; do
	# shellcheck disable=SC2086 # two words
	run 0 of "$with" ulnet-keys --dir "$keys" $name
done

serve "$without"
all_plain
ping 1 "$with" --keys "$keys" --as a
has err 'refused [(]the server refuses the handshake[)]; certainly not executed'
stop_lnetd server

serve "$with"
all_plain
stop_lnetd server

# A service may take calls of anybody, and know those who have keys.
serve "$with" --keys "$keys" --as b
ping 0 "$with" --keys "$keys" --as a
ping 1 "$without"
has err 'refused [(].*flavour auth[)]; certainly not executed'
stop_lnetd server

# Who asks for keys where there are none is told why.
ping 1 "$without" --keys "$keys" --as a
has err 'built without TLS'
run 1 of "$without" rpcserve --net 'tcp(127.0.0.2)' --port "$port" \
	--keys "$keys" --as b
has err 'built without TLS'
finish
