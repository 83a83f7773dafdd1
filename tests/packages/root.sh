#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# root.sh TREE DIR: makes a clean Debian in DIR/root, and installs the packages of
# DIR there, with apt. A program is built with them, and runs; a node, its tools and
# calls work; once they are removed, nothing of them is left. They are installed again
# at the end, for boot.sh.
# shellcheck disable=SC2016 # those are of the shell inside
set -euo pipefail

tree=$1 dir=$2 root=$2/root
packages=(libulnet0 libulrpc0 libulnet-dev libulrpc-dev ulnet-tools ulnet-doc)

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
inside 'cc -o /tmp/hello /packages/hello.c $(pkg-config --cflags --libs ulnet)
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
