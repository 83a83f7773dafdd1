#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lnetd and lnetctl as an ordinary user.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

as_user=()
if [ "$(id -u)" = 0 ]; then
	command -v setpriv >/dev/null || skip "setpriv is not installed"
	as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	"$lnetd" --version >/dev/null # libtool may link it now
	"$lnetctl" --version >/dev/null
	"${as_user[@]}" "$lnetd" --version >/dev/null 2>&1 ||
		skip "user 65534 may not run $lnetd"
	chmod 755 "$dir"
	mkdir "$dir/home" && chown 65534 "$dir/home"
else
	mkdir "$dir/home"
fi

# The usual socket is root's.
if [ ! -w /run/ulnet ] || [ "$(id -u)" = 0 ]; then
	run 1 "${as_user[@]}" env -u ULNET_SOCKET "$lnetd" --foreground
	has err "^lnetd: .*/run/ulnet.*: .*--socket"
	silent out
fi

# One of its own.
export ULNET_SOCKET=$dir/home/lnetd.sock
free_port port || skip "perl cannot find a free port"
run 0 "${as_user[@]}" "$lnetd" --pidfile "$dir/home/pid" \
	--net 'tcp(127.0.0.1)' --port "$port"
has out "^lnetd: ready: 127.0.0.1@tcp, port $port \(kernel nodes use 988\), socket "
pid=$(cat "$dir/home/pid")
expect "it runs as that user" \
	test "$(stat -c %u "/proc/$pid")" = "$(stat -c %u "$dir/home")"
run 0 "${as_user[@]}" "$lnetctl" net show
has out "net type: lo"
run 0 "${as_user[@]}" "$lnetctl" ping 127.0.0.1@tcp --timeout 60
run 0 "${as_user[@]}" "$lnetctl" export "$dir/home/conf"
exec {lock}<"$dir/home/pid"
run 0 "${as_user[@]}" kill "$pid"
expect "it ends" flock --timeout 60 "$lock"
expect "the socket is removed" test ! -e "$ULNET_SOCKET"

[ "$(id -u)" = 0 ] || finish

# root's, with a group and without.
export ULNET_SOCKET=$dir/lnetd.sock
need_lnetd a
run 243 "${as_user[@]}" "$lnetctl" net show
has err "^lnetctl: $ULNET_SOCKET: Permission denied: .*--group"
stop_lnetd a
need_lnetd a --group 65534
expect "mode of the socket" test "$(stat -c %a:%g "$ULNET_SOCKET")" = 660:65534
run 0 "${as_user[@]}" "$lnetctl" net show
finish
