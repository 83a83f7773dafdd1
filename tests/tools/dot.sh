#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lnetctl export --dot: Graphviz reads it, and it has what the node has
# (requirement H8).
. "${srcdir:-.}/tests/tools/lib.sh" || exit

command -v dot >/dev/null || skip "no dot (Debian: graphviz)"
free_port port || skip "perl cannot find a free port"

# draw ARGUMENT...: in Graphviz' own form, a statement a line, in $dir/out.
draw() {
	ctl 0 "$@" export --dot
	silent err
	cp "$dir/out" "$dir/drawing"
	run 0 dot -Tcanon "$dir/drawing"
	silent err
	tr -d '\n\t' <"$dir/out" | sed 's/[;{}]/&\n/g' >"$dir/lines"
	mv "$dir/lines" "$dir/out"
}

need_lnetd a --net 'tcp(127.0.0.1),tcp1(127.0.0.1)' --port "$port"
need_lnetd b --net 'tcp(127.0.0.2),tcp1(127.0.0.2)' --port "$port" \
	--socket "$dir/b.sock"

# Nothing but the node itself.
draw
has out '^digraph ulnet'
has out '"ni 127.0.0.1@tcp".*label="127.0.0.1@tcp\\n127.0.0.1\\nhealth 1000"'
has out '^"ni 127.0.0.1@tcp1" -> "net tcp1".*dir=none'
expect "no peers" test "$(grep -c 'cluster peer' "$dir/out")" = 0

# A peer, what is ill, and routes. The peer is stopped first: nothing that it answers
# makes its NID healthy again before the drawing.
ctl 0 discover 127.0.0.2@tcp
stop_lnetd b
ctl 0 peer set --nid 127.0.0.2@tcp1 --health 700
ctl 0 route add --net tcp7 --gateway 127.0.0.2@tcp --hop 2 --priority 3
ctl 0 route add --net tcp8 --gateway 127.0.0.9@tcp
draw
has out '^subgraph "cluster peer 127.0.0.2@tcp"'
has out '"peer 127.0.0.2@tcp1".*color=orange'
has out '"peer 127.0.0.2@tcp1".*health [0-9]{1,3}"'
has out '^"net tcp1" -> "peer 127.0.0.2@tcp1"'
has out '^"peer 127.0.0.2@tcp" -> "net tcp7".*hops 2\\npriority 3'
has out '^"net tcp" -> "peer 127.0.0.9@tcp"'
has out '^"peer 127.0.0.9@tcp" -> "net tcp8"'
expect "each net once" test "$(grep -c '^"net tcp.*shape=ellipse' "$dir/out")" = 4
expect "0@lo is not there" test "$(grep -c '@lo' "$dir/out")" = 0

# To a file, and not with --backup.
ctl 0 export --dot "$dir/file"
silent out
run 0 dot -Tcanon "$dir/file"
ctl 234 export --dot --backup
has err 'a drawing is no backup'

# An interface may be called anything.
strange='q"\n'
# shellcheck disable=SC2016
odd=(unshare -rn bash -c '
	ip link add "$0" type veth peer name eth &&
		ip addr add 10.9.9.1/24 dev "$0" &&
		ip link set "$0" up && ip link set eth up && exec "$@"' "$strange")
if "${odd[@]}" true 2>"$dir/odd"; then
	start odd "${odd[@]}" "$lnetd" --foreground --net "tcp($strange)" --port "$port" \
		--socket "$dir/odd.sock" ||
		complain "lnetd at $strange: $(cat "$dir/odd.err")"
	draw --socket "$dir/odd.sock"
	expect "the name of the interface" \
		grep -qF 'label="10.9.9.1@tcp\nq\"\\n\nhealth 1000"' "$dir/out"
else
	echo "an odd name of an interface is not tried: $(cat "$dir/odd")"
fi
finish
