#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lst(8) as public scripts use it, which are written for kernel nodes: without a
# network. In a network namespace of our own, with one interface.
if [ "${1-}" != inside ]; then
	apart=(unshare --net)
	[ "$(id -u)" = 0 ] || apart+=(--map-root-user)
	"${apart[@]}" ip link add here0 type veth peer name far0 2>/dev/null &&
		exec "${apart[@]}" bash "$0" inside
	echo "may not make a network namespace with interfaces"
	exit 77
fi
. "${srcdir:-.}/tests/tools/lib.sh" || exit
export LST_SESSION=$$ XDG_RUNTIME_DIR=$dir/run
mkdir "$XDG_RUNTIME_DIR"
ip link set lo up

run 1 "$lst" new_session -f x
has err '^lst: --net tcp: '
ip link add here0 type veth peer name far0
ip addr add 10.9.9.1/24 dev here0
ip addr add 10.9.9.2/24 dev here0
ip link set far0 up
ip link set here0 up
need_lnetd a --lst all --net 'tcp(10.9.9.2)'
run 0 "$lst" new_session -f x
run 0 "$lst" show_session
has out '^x: console 10.9.9.1@tcp, '
run 0 "$lst" add_group servers 10.9.9.2@tcp
run 0 "$lst" add_group clients 10.9.9.2@tcp
run 0 "$lst" add_test --from clients --to servers --loop 10 ping
run 0 "$lst" run --wait batch
run 0 "$lst" show_error clients servers
has out '^0 of [12] nodes have errors$'
run 0 "$lst" end_session
finish
