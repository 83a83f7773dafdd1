#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_security.sh [BUILD]
# The part of ./demo about keys: examples/doorman.c, a service that knows who calls.
# BUILD is where tools/ and examples/ were built; the current directory if not given.
# Leaves nothing behind. If anything unexpected happens, it ends and says why.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit
command -v ulnet-keys >/dev/null || {
	say "Built without OpenSSL: there are no keys."
	exit
}

# begin NAME COMMAND...: in the background, with its stdin open as long as this script
# runs; returns when it has said a line, in NAME.said.
begin() {
	local tries

	mkfifo "$1.input" || die "cannot make a pipe"
	"${@:2}" <"$1.input" >"$1.said" 2>&1 &
	pids[$1]=$!
	exec {input}>"$1.input"
	for ((tries = 0; tries < 600; tries++)); do
		[ ! -s "$1.said" ] || return 0
		gone "${pids[$1]}" && break
		sleep 0.1
	done
	cat "$1.said" >&2
	die "$1 is not ready"
}

# captured TEXT: in how many lines of what went by is that?
captured() {
	show grep -c "$1" capture
	grep -ac -- "$1" capture >output
	sed 's/^/  /' output
}

# serve ARGUMENT...: the service, behind somebody who reads all that goes by.
serve() {
	free_port
	behind=$port
	free_port
	begin tap "$examples/tap.pl" 127.0.0.1 "$port" "$behind" capture
	show doorman --keys keys --as server "$@" serve "$nid"
	begin server doorman --port "$behind" --keys keys --as server "$@" \
		serve "$nid"
}

end_service() {
	exec {input}>&- # the server's
	wait "${pids[server]}" || die "doorman: exit status $?"
	kill "${pids[tap]}"
	wait "${pids[tap]}"
	nothing_left "${pids[@]}"
	rm -f ./*.input
}

# call STATUS TEXT ARGUMENT...
call() {
	run "$1" 9 doorman --port "$port" "${@:3}" call "$nid" "$2"
}

nid=127.0.0.1@tcp
word=swordfish

say "An authority, a server, and two clients of it: Alice and Bob."
run 0 9 ulnet-keys --dir keys authority our-site
run 0 9 ulnet-keys --dir keys node server alice bob

say "A service that only those can call who have keys of this authority. Somebody on
the way reads all that goes by: examples/tap.pl."
serve

say "Who has no keys is refused, and so is a namesake with keys of his own making."
call 1 "let me in"
has "^refused: .*flavour auth"
run 0 0 ulnet-keys --dir made authority our-site
run 0 0 ulnet-keys --dir made node alice
call 1 "let me in" --keys made --as alice
has "^refused: .*certificate is not believed"

say "Alice and Bob are let in, and the service knows who they are."
call 0 "the word is $word" --keys keys --as alice
has "^welcome, alice$"
call 0 "I have forgotten it" --keys keys --as bob
has "^welcome, bob$"
say "What the service has heard:"
sed 's/^/  /' server.said

say "What is on the way cannot be changed, or sent again; but it can be read:"
captured "$word"
has '^[1-9]'
end_service

say "With privacy nobody can read it. The capture has what went by, but no word of it:"
serve --flavour privacy
call 0 "the word is $word" --keys keys --as alice
has "^welcome, alice$"
tail -n 1 server.said | sed 's/^/  /'
captured "$word"
has '^0$'
captured welcome
has '^0$'
show stat -c "%s bytes" capture
stat -c "  %s bytes" capture
[ "$(stat -c %s capture)" -gt 1000 ] || die "nothing was captured"
end_service
