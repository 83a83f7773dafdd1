#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# examples/store, as its users see it: three servers whose names are in a file; one is
# drained, and another one killed, while four clients get an object. No get fails.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
store=$PWD/examples/store
[ -x "$store/server" ] || skip "the example is not built: there is no protoc"
free_port port || skip "perl cannot find a free port"
servers=file://$dir/servers
printf "127.0.0.%d:$port\n" 91 92 93 >"$dir/servers"

# serve N: server N, with what it had before.
serve() {
	mkdir -p "$dir/objects$1"
	"$store/server" "127.0.0.9$1@tcp" "$port" "$dir/objects$1" 50000000 \
		>"$dir/server$1.log" 2>&1 </dev/null &
	pids[server$1]=$!
	while ! grep -q "ready; SIGTERM ends it" "$dir/server$1.log"; do
		kill -0 "${pids[server$1]}" 2>/dev/null || {
			cat "$dir/server$1.log"
			complain "server $1 does not start"
			finish
		}
		sleep 0.02
	done
}

client() { # STATUS ARGUMENT...; its input is $input
	run "$1" "$store/client" "$servers" "${@:2}" <"${input:-/dev/null}"
}

# gets N: waits until each client has got N objects more. Fails if one ends.
gets() {
	local i had
	local -a want=()

	for i in 1 2 3 4; do
		want[i]=$(($(wc -l <"$dir/load$i") + $1))
	done
	for i in 1 2 3 4; do
		while had=$(wc -l <"$dir/load$i") && ((had < want[i])); do
			kill -0 "${pids[load$i]}" 2>/dev/null || return
			sleep 0.02
		done
	done
}

cd "$dir" || exit
for n in 1 2 3; do
	serve $n
done
head -c 100 /dev/urandom >small
head -c $((20 << 20)) /dev/urandom >large
: >empty
for name in small large empty; do
	input=$name client 0 put $name
	has err "^client: $name: [0-9]+ bytes, at 3 of 3 servers$"
	client 0 get $name
	expect "$name: what was got is not what was put" cmp out $name
done
client 0 list ""
same out <<-END
	         0 empty
	  20971520 large
	       100 small
END
client 0 list s
same out <<-END
	       100 small
END
# An object is replaced.
input=large client 0 put small
client 0 get small
expect "small is what it was before" cmp out large
# What is not there, what is no name, and what is too much.
client 1 get none
has err "^client: none: NOT_FOUND: there is no such object$"
input=small client 1 put ../none
has err "^client: a server: INVALID_ARGUMENT: no object, or no data$"
input=large client 1 put more
has err "^client: a server: RESOURCE_EXHAUSTED: 20971520 bytes do not fit: 41943040 of 50000000 are used$"
has err "^client: it has room for 8056960$"
has err "^client: more: 20971520 bytes, at 0 of 3 servers$"

# Under load, the first server is drained, and comes back.
for i in 1 2 3 4; do
	"$store/client" "$servers" load large >load$i 2>&1 </dev/null &
	pids[load$i]=$!
done
expect "no load" gets 2
stop_lnetd server1 TERM
expect "a get fails while a server is drained" gets 5
expect "the server did not answer all" \
	grep -q "all calls were answered" server1.log
serve 1
expect "a get fails when a server is back" gets 3
# The second one is killed.
kill -KILL "${pids[server2]}"
wait "${pids[server2]}" 2>/dev/null
unset "pids[server2]"
expect "a get fails when a server is killed" gets 5
# Most servers are there: objects can be put.
input=small client 0 put small
has err "^client: small: 100 bytes, at 2 of 3 servers$"
for i in 1 2 3 4; do
	kill -KILL "${pids[load$i]}"
	wait "${pids[load$i]}" 2>/dev/null
	unset "pids[load$i]"
	expect "a get has failed: $(grep -E 'large|other data' load$i)" \
		sh -c "! grep -E 'large|other data' load$i"
done
# The second one has missed that, and still has what was there before.
serve 2
client 0 list small
has out "small$"
finish
