#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# root.sh TREE DIR: makes a clean Debian in DIR/root, and installs the packages of
# DIR there, with apt. A program is built with them, and runs; a node, its tools and
# calls work; once they are removed, nothing of them is left. They are installed again
# at the end, for boot.sh.
# shellcheck disable=SC2016 # those are of the shell inside
set -euo pipefail

tree=$1 dir=$2 root=$2/root
packages=(libulnet0 libulnetctl0 libulnetetcd0 libulnetlab0 libulrpc0 libulnet-dev libulrpc-dev ulnet-tools ulnet-doc)

inside() {
	chroot "$root" env DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 sh -exc "$1"
}

files() {
	(cd "$root" && find . -xdev \( -path ./var -o -path ./tmp -o -path ./packages \
		-o -path ./proc -o -path ./run \) -prune -o ! -type d -print | sort)
}

install() {
	inside 'apt-get install -q -y --no-install-recommends /packages/*.deb'
}

# apt's own, and what others of its packages write as they are installed
kept='^\./(etc/(group|gshadow|passwd|shadow|subuid|subgid)-?|etc/ld\.so\.cache)$'

rm -rf "$root"
# shellcheck disable=SC1091
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mmdebstrap --variant=minbase \
	--include=ca-certificates,systemd,dbus,gcc,libc6-dev,pkg-config \
	"$suite" "$root"
mkdir "$root/packages"
for package in "${packages[@]}"; do
	cp "$dir/${package}"_[0-9]*.deb "$root/packages"
done
cp "$tree/tests/install/hello.c" "$root/packages"
inside 'apt-get update -q'
files | grep -vE "$kept" >"$dir/before"

install
# Of each library, with what it requires.
inside 'for name in ulnet ulnetctl ulnetetcd ulnetlab ulrpc; do
		pkg-config --cflags --libs $name
	done'
inside 'cc -o /tmp/hello /packages/hello.c $(pkg-config --cflags --libs ulnetlab)
	/tmp/hello'
inside 'cd /tmp && echo "int main(void) { return !ulrpc_conf_init; }" |
	cc -include ulnet/rpc.h -x c -o rpc - $(pkg-config --cflags --libs ulrpc)
	./rpc'
inside 'mkdir -p /run/test
	rpcserve --net "tcp(127.0.0.2)" --port 1988 --socket /run/test/s &
	server=$!
	trap "kill $server" EXIT
	until lnetctl --socket /run/test/s net show; do sleep 0.1; done
	rpcping --port 1988 --count 10 --verify 127.0.0.2@tcp
	lnetctl --socket /run/test/s ping 127.0.0.2@tcp
	trap - EXIT
	kill $server
	wait $server'
# The self-test between two nodes, and what they tell Prometheus: by HTTP, and by lnetctl.
inside 'mkdir -p /run/test
	export LST_SESSION=packages XDG_RUNTIME_DIR=/run/test
	trap "kill \$(cat /run/test/*.pid)" EXIT
	for n in 1 2; do
		lnetd --lst 127.0.0.3@tcp --net "tcp(127.0.0.$n)" --port 1988 \
			--socket /run/test/$n --pidfile /run/test/$n.pid --metrics 998$n
	done
	lst="lst --net tcp(127.0.0.3) --port 1988"
	$lst new_session packages
	$lst add_group clients 127.0.0.1@tcp
	$lst add_group servers 127.0.0.2@tcp
	$lst add_batch bulk
	$lst add_test --batch bulk --from clients --to servers brw write check=full size=64k
	$lst run bulk
	$lst stat --delay 1 --count 1 clients servers
	$lst stop bulk
	$lst show_error clients servers | grep "^0 of 2 nodes have errors"
	$lst end_session
	lnetctl --socket /run/test/1 metrics | grep "^ulnet_send_total [1-9]"
	bash -c "exec 3<>/dev/tcp/127.0.0.1/9982
		printf \"GET /metrics HTTP/1.0\\r\\n\\r\\n\" >&3
		cat <&3" | grep "^ulnet_recv_total [1-9]"
	trap - EXIT
	for pid in $(cat /run/test/*.pid); do
		kill $pid
		while kill -0 $pid; do sleep 1; done
	done'
inside "apt-get purge -q -y ${packages[*]} && apt-get autoremove -q -y --purge"
files | grep -vE "$kept" >"$dir/after"
# What they need has gone, too, where nothing else needed it; nothing came.
comm -13 "$dir/before" "$dir/after" >"$dir/left"
[ ! -s "$dir/left" ] || {
	echo "left behind:"
	cat "$dir/left"
	exit 1
}
install
