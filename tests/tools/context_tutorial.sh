#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The part of ulrpc_tutorial(7) about contexts is typed as it stands, and answers as it
# says; the port is another one. examples/context.c is the program that the page shows:
# tests/tutorial_check.sh.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
free_port port || skip "perl cannot find a free port"
extract=$(realpath "${srcdir:-.}")/tests/install/tutorial.sh
page=$(realpath "${srcdir:-.}")/man/man7/ulrpc_tutorial.7
COMMANDS=5

shown() { # MARK
	bash "$extract" shown "$1" "$page" | sed "s/9988/$port/g"
}

# Waits until the server has said so many lines, or has ended.
server_says() { # LINES
	for ((i = 0; i < 600; i++)); do
		[ "$(wc -l <server.log)" -lt "$1" ] &&
			kill -0 "${pids[server]}" 2>/dev/null || return
		sleep 0.1
	done
}

start_server() {
	local -a lines

	mapfile -t lines < <(shown "SERVER context")
	expect "the page starts the server in another way" test ${#lines[@]} = 3
	mkfifo input
	exec 10<>input
	: >server.log
	bash -c "exec ${lines[1]#\$ }" <input >>server.log 2>&1 10>&- &
	pids[server]=$!
	server_says 1
	expect "the server says: $(cat server.log)" \
		test "$(cat server.log)" = "${lines[2]}"
}

type_and_compare() { # COMMAND EXPECTED
	echo "\$ $1"
	timeout 100 bash -c "${shop:-:}; $1" >said 2>&1 </dev/null 10>&-
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
		[[ $command != shop=* ]] || shop=$command
	done < <(shown "$1" && echo END)
}

ln -s "$PWD/examples/context" "$dir/context"
cd "$dir" || exit
start_server
commands=0 shop=''
type_all "SHELL context"
expect "$commands commands, and not $COMMANDS" test $commands = $COMMANDS
mapfile -t said < <(shown "SAID context")
server_says $((1 + ${#said[@]}))
exec 10>&-
expect "exit status of the server" wait "${pids[server]}"
unset "pids[server]"
expect "the server has said: $(cat server.log)" diff \
	<(printf '%s\n' "${said[@]}" | sort) <(tail -n +2 server.log | sort)
finish
