#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The part of ulrpc_tutorial(7) about streams is typed as it stands, and answers as it
# says; the port is another one. examples/lines.c is the program that the page shows:
# tests/tutorial_check.sh.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
. "${srcdir:-.}/tests/tools/typed.sh" || exit
SERVER_COMMANDS=2
COMMANDS=3

# Starts the server as the page does, whose input is fd 3.
start_server() {
	local -a lines

	mapfile -t lines < <(shown "SERVER lines")
	expect "the page starts the server in another way" \
		test ${#lines[@]} = $((SERVER_COMMANDS + 1))
	expect "${lines[0]}" bash -c "${lines[0]#\$ }"
	mkfifo input
	exec 3<>input
	start server bash -c "exec ${lines[1]#\$ } <input 2>&1 3>&-" ||
		complain "${lines[1]}: no server"
	expect "the server says: $ready" test "$ready" = "${lines[2]}"
}

# The end of its input ends the server.
stop_server() {
	exec 3>&-
	expect "the server's exit status" wait "${pids[server]}"
	unset "pids[server]"
}

ln -s "$PWD/examples/lines" "$dir/lines"
cd "$dir" || exit
start_server
type_all "SHELL lines"
expect "$commands commands, and not $COMMANDS" test $commands = $COMMANDS
stop_server
finish
