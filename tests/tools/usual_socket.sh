#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Without being told where, both programs use the same socket, and its directory
# is made. In a /run of our own.
if [ "${1-}" != inside ]; then
	apart=(unshare --mount)
	[ "$(id -u)" = 0 ] || apart+=(--map-root-user)
	"${apart[@]}" true 2>/dev/null && exec "${apart[@]}" bash "$0" inside
	echo "may not make a mount namespace"
	exit 77
fi
. "${srcdir:-.}/tests/tools/lib.sh" || exit
unset ULNET_SOCKET
mount -t tmpfs tmpfs /run 2>/dev/null || skip "may not mount a tmpfs on /run"

ctl 254 net show
has err "^lnetctl: /run/ulnet/lnetd.sock: No such file or directory"
need_lnetd a
expect "ready line: $ready" test "$ready" = \
	"lnetd: ready: no network yet, socket /run/ulnet/lnetd.sock"
expect "mode of the directory" test "$(stat -c %a /run/ulnet)" = 755
ctl 0 net show
has out "net type: lo"
stop_lnetd a
expect "no socket is left" test ! -e /run/ulnet/lnetd.sock
need_lnetd a # the directory is there
ctl 0 net show
stop_lnetd a
rmdir /run/ulnet
echo text >/run/ulnet
run 1 "$lnetd" --foreground
has err "^lnetd: socket /run/ulnet/lnetd.sock: Not a directory"
finish
