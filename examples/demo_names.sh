#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_names.sh [BUILD]
# A part of ./demo: several servers of one service, by a name that stands for all of
# them; a stream; and a call in JSON. BUILD is where tools/ and examples/ were built; the
# current directory if not given. For examples/store, pkg-config must find ulrpc, and
# the dynamic linker its library. Leaves nothing behind. If anything unexpected happens,
# it ends and says why.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit

# serve NAME COMMAND...: starts a server, in the background, and waits until it is
# ready, at most a minute.
serve() {
	local name=$1 tries

	shift
	show "$@"
	: >"$name.said"
	"$@" <"$dir/never" >"$name.said" 2>&1 &
	pids[$name]=$!
	for ((tries = 0; tries < 600; tries++)); do
		! grep -qE "ready[:;]" "$name.said" || return 0
		gone "${pids[$name]}" && break
		sleep 0.1
	done
	sed 's/^/  /' "$name.said"
	die "$name is not ready"
}

# stop NAME SIGNAL
stop() {
	show kill "-$2" "${pids[$1]}"
	kill "-$2" "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
	ended+=("${pids[$1]}")
	unset "pids[$1]"
}

# How many objects client I has got.
count() { # I
	local n

	n=$(grep -c 'gets$' "load$1.said" 2>/dev/null) || n=0
	echo "$n"
}

# Waits until each client has got MORE objects, and prints how many that were in all.
# Fails if one of them ends, which it does when it could not get the object.
gets() { # MORE
	local i
	local -A want=()

	for i in 1 2 3 4; do
		want[$i]=$(($(count $i) + $1))
	done
	for i in 1 2 3 4; do
		while (($(count $i) < want[$i])); do
			! gone "${pids[load$i]}" || {
				tail -n 1 load$i.said
				die "a client could not get the object"
			}
			sleep 0.05
		done
	done
	echo "  objects that the clients have got: $(count 1), $(count 2), $(count 3)" \
		"and $(count 4); none failed"
}

free_port
mkfifo never || die "cannot make a pipe"
exec {never}<>never # reading from it waits for ever
ended=()

say "A store of objects, with three servers: examples/store, $(cat \
	"$examples"/store/*.[ch] "$examples"/store/*.proto | wc -l) lines, built with what is
installed. A file lists the servers; its name is the name by which clients find them."
cp -R "$examples/store" . && cd store || die "examples/store is not there"
run 0 30 make
cd .. || die "no way back"
for n in 2 3 4; do
	mkdir "objects$n"
	echo "127.0.0.$n:$port" >>servers
done
show cat servers
sed 's/^/  /' servers
servers=file://$dir/servers
for n in 2 3 4; do
	serve "server$n" store/server "127.0.0.$n@tcp" "$port" "objects$n" 30000000
done

say "An object of 20 MiB is put, and got back. A second one would be too much."
head -c $((20 << 20)) /dev/urandom >file || die "cannot make a file"
echo "  \$ store/client $servers put large <file"
store/client "$servers" put large <file >output 2>&1 || die "put: exit status $?"
sed 's/^/  /' output
has "large: 20971520 bytes, at 3 of 3 servers"
echo "  \$ store/client $servers get large >copy"
store/client "$servers" get large >copy || die "get: exit status $?"
run 0 1 cmp file copy
echo "  \$ store/client $servers put more <file"
! store/client "$servers" put more <file >output 2>&1 || die "there was room for it"
sed 's/^/  /' output
has "RESOURCE_EXHAUSTED: 20971520 bytes do not fit"

say "Four clients get it over and over, and compare what they get. Meanwhile one server
is killed, and another one is told to end, which first answers what it has begun."
for i in 1 2 3 4; do
	echo "  \$ store/client $servers load large &"
	store/client "$servers" load large >load$i.said 2>&1 </dev/null &
	pids[load$i]=$!
done
gets 3
stop server2 KILL
gets 3
stop server3 TERM
sed 's/^/  /' server3.said | tail -n 1
gets 3
for i in 1 2 3 4; do
	kill -TERM "${pids[load$i]}"
	wait "${pids[load$i]}" 2>/dev/null
	ended+=("${pids[load$i]}")
	unset "pids[load$i]"
done
stop server4 TERM

say "A stream: the server of ulrpc_tutorial(7) sends the lines of a file, one message
each, to a client that finds it by the name localhost."
seq 1 20000 >file
serve lines lines serve "$port" file
echo "  \$ lines read localhost:$port >copy"
lines read "localhost:$port" >copy || die "lines: exit status $?"
run 0 1 cmp file copy
echo "  $(wc -l <copy) messages, the same as in the file"
stop lines TERM

say "Any method of a node that tells of its services can be called with JSON."
serve echo rpcserve --net 'tcp(127.0.0.2)' --port "$port" --about
run 0 9 ulrpc "127.0.0.2:$port" describe echo.Echo
run 0 9 ulrpc "127.0.0.2:$port" call echo.Echo '{"payload": "aGVsbG8="}'
has '"payload": "aGVsbG8="'
stop echo TERM

nothing_left "${ended[@]}"
say "Nothing is left: no process, nobody listens on port $port."
