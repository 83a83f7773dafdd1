#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# examples/depot: what it does and what it refuses. What it is for is in examples/demo_tcp.sh.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

depot=$PWD/examples/depot
free_port port || skip "perl cannot find a free port"

orders() { # STATUS LINE...: to a depot without nets
	printf '%s\n' "${@:2}" >"$dir/orders"
	run "$1" "$depot" --port "$port" --socket "$dir/a" <"$dir/orders"
}

# ---- command line ----

for args in '' '--port 0 --socket x' '--port 65536 --socket x' \
	'--port 12x --socket x' '--port -5 --socket x' '--socket x y' \
	'--sockets x' '--socket'; do
	run 2 "$depot" $args
	has err 'usage: depot \[--port 1..65535\] --socket PATH$'
	silent out
done
run 1 "$depot" --socket "$dir/none/a" </dev/null
has err "$dir/none/a: No such file or directory\$"

# ---- orders ----

orders 0 '' quit 'put x'
same out <<END
depot: ready on port $port, socket $dir/a
END
silent err
orders 0 'put 0@lo' 'get 0@lo'
has out '^put 0@lo: 1048576 bytes, seed [0-9a-f]{16}: delivered$'
has out '^get 0@lo: 1048576 bytes, seed [0-9a-f]{16}: verified$'
orders 1 'put 127.0.0.9@tcp' 'get 127.0.0.256@tcp' put 'get 0@lo 0@lo' \
	'quit now' $'\1\2%n'
has err 'put 127.0.0.9@tcp: No route to host; local no route, not delivered$'
has err 'get 127.0.0.256@tcp: not a NID'
has err 'put : not a NID'
has err 'get : not a NID'
has err 'quit: put NID, get NID or quit is expected$'
checks=$((checks + 1))
[ "$(wc -l <"$dir/err")" = 6 ] || complain "$ran: not 6 errors"
expect "no socket is left" test ! -e "$dir/a"

# ---- several at once: nothing is mixed up ----

for name in 1 2 3; do
	mkfifo "$dir/in$name" "$dir/out$name"
	"$depot" --port "$port" --socket "$dir/s$name" <"$dir/in$name" \
		>"$dir/out$name" 2>"$dir/err$name" &
	pids[$name]=$!
	exec {in[name]}>"$dir/in$name" {out[name]}<"$dir/out$name"
	read -r -u "${out[name]}"
	cat <&"${out[name]}" >"$dir/said$name" &
	cats[name]=$!
	ctl 0 --socket "$dir/s$name" net add --net tcp --if "127.0.0.$name"
done
for name in 1 2 3; do
	for ((i = 0; i < 20; i++)); do
		printf 'put 127.0.0.1@tcp\nget 127.0.0.1@tcp\n'
	done >&"${in[name]}"
done
# The first one is needed longest. It hears a little later than those who got
# them that its documents have arrived.
served='^127.0.0.[123]@tcp got 1048576 bytes: ok(, the last one)?$'
await_served() { # for a minute
	local i

	for ((i = 0; i < 600; i++)); do
		[ "$(grep -cE "$served" "$dir/said1")" != 60 ] || return 0
		sleep 0.1
	done
}
for name in 3 2 1; do
	[ "$name" != 1 ] || await_served
	echo quit >&"${in[name]}"
	wait "${pids[$name]}"
	expect "depot $name: exit status $?" test $? = 0
	unset "pids[$name]"
	wait "${cats[name]}"
	cp "$dir/said$name" "$dir/out" && mv "$dir/err$name" "$dir/err"
	ran="depot $name"
	silent err
	expect "$ran: 20 PUTs are delivered" \
		test "$(grep -c '^put .*: delivered$' "$dir/out")" = 20
	expect "$ran: 20 GETs are verified" \
		test "$(grep -c '^get .*: verified$' "$dir/out")" = 20
done
expect "all 60 PUTs were verified" \
	test "$(grep -cE '^127.0.0.[123]@tcp put .*: verified$' "$dir/out")" = 60
expect "all 60 GETs were served" \
	test "$(grep -cE "$served" "$dir/out")" = 60
finish
