# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests that type a part of ulrpc_tutorial(7) as it stands; the port is another one. They
# source this file after lib.sh.
# shellcheck disable=SC2154 # free_port sets port
# Where a machine is busy, programs would say more than the page: that turns are late.
export ULNET_LOG=loop=err
free_port port || skip "perl cannot find a free port"
extract=$(realpath "${srcdir:-.}")/tests/install/tutorial.sh
page=$(realpath "${srcdir:-.}")/man/man7/ulrpc_tutorial.7
commands=0 before=''
# For how many seconds a command that says something else is typed again; where threads
# are delayed (stage noise), others are then than the time before.
patience=0

shown() { # MARK
	bash "$extract" shown "$1" "$page" | sed "s/9988/$port/g"
}

# Servers end when their input does, so no command has the descriptors of these.
type_and_compare() { # COMMAND EXPECTED
	local until=$((SECONDS + patience))

	while :; do
		echo "\$ $1"
		timeout 100 bash -c "${before:-:}; $1" >said 2>&1 </dev/null \
			3>&- 10>&- 11>&- 12>&-
		cat said
		[ "$(cat said)" != "${2%$'\n'}" ] && [ $SECONDS -lt $until ] ||
			break
		[ -z "${NOISE_SEED:-}" ] || NOISE_SEED=$((NOISE_SEED + 1))
	done
	expect "$1: the page says otherwise: $2" \
		test "$(cat said)" = "${2%$'\n'}"
}

# type_all MARK [VARIABLE]: types all commands, and counts them. One that sets VARIABLE is for
# those after it, too.
type_all() {
	local command='' expected='' line

	while IFS= read -r line; do
		if [[ $line != '$ '* && $line != END ]]; then
			expected+=$line$'\n'
			continue
		fi
		[ -z "$command" ] || type_and_compare "$command" "$expected"
		[ "$line" = END ] || commands=$((commands + 1))
		command=${line#\$ } expected=''
		[[ -z ${2:-} || $command != "$2="* ]] || before=$command
	done < <(shown "$1" && echo END)
}
