#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The part of ulrpc_tutorial(7) about several servers is typed as it stands, and answers
# as it says; the port is another one. examples/several.c is the program that the page
# shows: tests/tutorial_check.sh.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
free_port port || skip "perl cannot find a free port"
extract=$(realpath "${srcdir:-.}")/tests/install/tutorial.sh
page=$(realpath "${srcdir:-.}")/man/man7/ulrpc_tutorial.7
SERVERS=3
COMMANDS=7

shown() { # MARK
	bash "$extract" shown "$1" "$page" | sed "s/9988/$port/g"
}

# Starts the servers as the page does; the input of server N is the descriptor 10 + N.
start_servers() {
	local -a lines
	local n command

	mapfile -t lines < <(shown "SERVER several")
	expect "the page starts the servers in another way" \
		test ${#lines[@]} = $((1 + 2 * SERVERS))
	for ((n = 0; n < SERVERS; n++)); do
		command=${lines[1 + 2 * n]#\$ }
		mkfifo "input$n"
		eval "exec $((10 + n))<>input$n"
		start "server$n" bash -c "exec $command <input$n 2>&1 10>&- 11>&- 12>&-" ||
			complain "$command: no server"
		expect "the server says: $ready" \
			test "$ready" = "${lines[2 + 2 * n]}"
	done
}

# The end of its input ends a server.
stop_server() { # N
	eval "exec $((10 + $1))>&-"
	expect "exit status of server $1" wait "${pids[server$1]}"
	unset "pids[server$1]"
}

type_and_compare() { # COMMAND EXPECTED
	echo "\$ $1"
	timeout 100 bash -c "${servers:-:}; $1" >said 2>&1 </dev/null \
		10>&- 11>&- 12>&-
	cat said
	expect "$1: the page says otherwise: $2" \
		test "$(cat said)" = "${2%$'\n'}"
}

type_all() { # MARK
	local command='' expected='' line

	while IFS= read -r line; do
		if [[ $line != '$ '* && $line != END ]]; then
			expected+=$line$'\n'
			continue
		fi
		[ -z "$command" ] || type_and_compare "$command" "$expected"
		[ "$line" = END ] || commands=$((commands + 1))
		command=${line#\$ } expected=''
		[[ $command != servers=* ]] || servers=$command
	done < <(shown "$1" && echo END)
}

ln -s "$PWD/examples/several" "$dir/several"
cd "$dir" || exit
start_servers
commands=0 servers=''
type_all "SHELL several"
stop_server 0
type_all "SHELL several without the first"
expect "$commands commands, and not $COMMANDS" test $commands = $COMMANDS
stop_server 1
stop_server 2
finish
