#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_survive.sh [BUILD]
# The fourth part of ./demo: what becomes of calls when servers are slow, stopped, or
# killed. BUILD is where tools/ was built; the current directory if not given. For
# examples/ledger, pkg-config must find ulrpc, and the dynamic linker its library.
# Leaves nothing behind. If anything unexpected happens, it ends and says why.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit

# ready NAME PATTERN: waits until the server NAME has printed a line that matches
# PATTERN, at most a minute.
ready() {
	local tries

	for ((tries = 0; tries < 600; tries++)); do
		! grep -qE "$2" "$1.said" || return 0
		gone "${pids[$1]}" && break
		sleep 0.1
	done
	sed 's/^/  /' "$1.said"
	die "$1 is not ready"
}

# serve NAME COMMAND...: starts a server, in the background, and waits for it.
serve() {
	local name=$1

	shift
	show "$@"
	: >"$name.said" # that of the server before was ready, too
	# Servers that end when Enter is pressed read from a pipe that stays empty.
	"$@" <"$dir/never" >"$name.said" 2>&1 &
	pids[$name]=$!
	ready "$name" "ready[:;]"
}

# stop NAME SIGNAL
stop() {
	show kill "-$2" "${pids[$1]}"
	kill "-$2" "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
	ended+=("${pids[$1]}")
	unset "pids[$1]"
}

# written DIRECTORY NAME: waits until a file in DIRECTORY is written. Fails if the
# process NAME ends before.
written() {
	local before

	before=$(stat -c %y "$1"/*)
	while [ "$(stat -c %y "$1"/*)" = "$before" ]; do
		! gone "${pids[$2]}" || die "nothing is stored in $1 any more"
		sleep 0.01
	done
}

free_port
mkfifo never || die "cannot make a pipe"
exec {never}<>never # reading from it waits for ever
ended=()
node=(--net 'tcp(127.0.0.1)' --port "$port")
echo=127.0.0.2@tcp

say "A call may take longer than anybody expected: the server says, again and again,
that it is working on it."
serve echo rpcserve --net 'tcp(127.0.0.2)' --port "$port"
run 0 14 rpcping "${node[@]}" --count 1 --delay 3s --progress 10 --deadline 20 \
	--explain "$echo"
has "^  calls 1, lost 0, "
has "extensions_received [1-9]"

say "The server stops for two seconds, and goes on. No call is lost."
show rpcping "${node[@]}" --time 4 --inflight 16 --verify --deadline 10 "$echo"
rpcping "${node[@]}" --time 4 --inflight 16 --verify --deadline 10 "$echo" \
	>output 2>&1 </dev/null &
pids[calls]=$!
sleep 1
show kill -STOP "${pids[echo]}"
kill -STOP "${pids[echo]}"
sleep 2
show kill -CONT "${pids[echo]}"
kill -CONT "${pids[echo]}"
wait "${pids[calls]}" || die "rpcping: exit status $?"
unset "pids[calls]"
sed 's/^/  /' output
has "^  calls [0-9]+, lost 0, "
stop echo TERM

say "A ledger: examples/ledger, built with what is installed. It is durable: it stores
an account together with records of the calls that have changed it."
cp -R "$examples/ledger" . && cd ledger || die "examples/ledger is not there"
run 0 30 make
mkdir ../accounts && cd .. || die "no way back"
ledger=127.0.0.3@tcp
serve ledger ledger/server "$ledger" accounts "$port"

say "The ledger is killed and started again, twice, while 16 calls at a time are under
way. Each call is executed once, and its caller is told so."
show ledger/client 127.0.0.1@tcp "$ledger" "$port" 5000
ledger/client 127.0.0.1@tcp "$ledger" "$port" 5000 >output 2>&1 </dev/null &
pids[calls]=$!
for i in 1 2; do
	written accounts calls
	stop ledger KILL
	serve ledger ledger/server "$ledger" accounts "$port"
done
wait "${pids[calls]}" || {
	cat output
	die "client: exit status $?"
}
unset "pids[calls]"
sed 's/^/  /' output
has "^5000 calls: 5000 ok, 0 failed, 0 unknown; 5000 entries were added"
stop ledger KILL

nothing_left "${ended[@]}"
say "Nothing is left: no process, nobody listens on port $port."
