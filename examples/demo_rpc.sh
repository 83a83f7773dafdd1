#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_rpc.sh [BUILD]
# The third part of ./demo: RPC between processes of this host. BUILD is where tools/
# was built; the current directory if not given. For examples/tally, pkg-config must
# find ulrpc, and the dynamic linker its library. Leaves nothing behind. If anything
# unexpected happens, it ends and says why.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit

# ready NAME PATTERN: waits until the server NAME has printed something, at most a
# minute; fails unless a line matches PATTERN.
ready() {
	local tries

	for ((tries = 0; tries < 600; tries++)); do
		[ ! -s "$1.said" ] || break
		gone "${pids[$1]}" && break
		sleep 0.1
	done
	sed 's/^/  /' "$1.said"
	grep -qE "$2" "$1.said" || die "$1 is not ready"
}

# live COMMAND...: prints the command, and its output while it runs, which is kept in
# the file "output".
live() {
	show "$@"
	"$@" >output </dev/null || die "$*: exit status $?"
	sed 's/^/  /' output
}

# end NAME: fails unless the process ends with status 0.
end() {
	wait "${pids[$1]}" || die "$1: exit status $?"
	ended+=("${pids[$1]}")
	unset "pids[$1]"
}

free_port
ended=()
server=127.0.0.2@tcp
node=(--net 'tcp(127.0.0.1)' --port "$port")

say "A node that runs services: echo sends back what it gets, brw moves bulk
data."
show rpcserve --net 'tcp(127.0.0.2)' --port "$port"
rpcserve --net 'tcp(127.0.0.2)' --port "$port" >server.said </dev/null &
pids[server]=$!
ready server "^rpcserve: ready: $server, .* echo .* brw "

say "Another one calls it: one call after the other, then 64 at a time."
run 0 9 rpcping "${node[@]}" --count 2000 --verify "$server"
has "^  calls 2000, lost 0, "
live rpcping "${node[@]}" --time 2 --inflight 64 --live --interval 0.5 \
	--explain "$server"
has "^  calls [0-9]+, lost 0, "
has "^  rail 127.0.0.1@tcp to $server: "

say "1000 calls a second, whatever becomes of them; the service takes 20 ms for
each."
run 0 9 rpcping "${node[@]}" --time 1 --rate 1000 --delay 20ms "$server"
has "^  calls [0-9]+, lost 0, "

say "Bulk data: 16 MiB for each call, by PUT and by GET. All contents are new, and
every byte is looked at."
live rpcping "${node[@]}" --time 1 --inflight 4 --live --interval 0.5 \
	--bulk-read 16M --verify --checksum "$server"
has "^  calls [0-9]+, lost 0, "
live rpcping "${node[@]}" --time 1 --inflight 4 --live --interval 0.5 \
	--bulk-write 16M --verify --checksum "$server"
has "^  calls [0-9]+, lost 0, "

say "Deadlines are kept: the service wants a minute, the caller has two
seconds. Then a node that is not there."
run 1 9 rpcping "${node[@]}" --count 1 --delay 1m --deadline 2 "$server"
has "a call was lost: deadline; "
run 1 9 rpcping "${node[@]}" --count 1 --deadline 0.5 127.0.0.9@tcp
has "a call was lost: unreachable \(127.0.0.9@tcp: Connection refused\); certainly not executed"

say "For programs:"
run 0 9 rpcping "${node[@]}" --count 1000 --json "$server"
has '"calls": 1000, "lost": 0,'

say "The server ends."
show kill -TERM "${pids[server]}"
kill -TERM "${pids[server]}"
end server

say "A service of one's own: examples/tally, $(cat "$examples"/tally/*.[ch] \
	"$examples"/tally/*.proto | wc -l) lines, built with what is installed."
cp -R "$examples/tally" . && cd tally || die "examples/tally is not there"
run 0 30 make
mkfifo enter || die "cannot make a pipe"
show ./server "127.0.0.1@tcp"
./server 127.0.0.1@tcp <enter 2>../tally.said &
pids[tally]=$!
exec {enter}>enter
cd .. || die "no way back"
ready tally "ready; Enter ends it"
run 0 9 tally/client 127.0.0.1@tcp 40
has "^40\$"
run 0 9 tally/client 127.0.0.1@tcp 2
has "^42\$"
echo >&"$enter" || die "tally does not listen"
end tally

nothing_left "${ended[@]}"
say "Nothing is left: no process, no socket file, nobody listens on port $port."
