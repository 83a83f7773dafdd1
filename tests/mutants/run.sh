#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: tests/mutants/run.sh [--prepare | --prepared] BUILD NAME...
# Makes the deliberate mistake of NAME.patch, and runs the program that must catch it.
# The patch says above the first "---" what the mistake breaks and, in a line
# "caught-by: PROGRAM [ARGUMENT...]", what catches it: a campaign, another simulation,
# or a unit test. The patched files are compiled as those of BUILD are, where configure
# was run, and take the place of the archives' members of the same names. The exit
# status is 0 only if all of the mistakes are caught: by a violation or a failed test,
# not by an end of another kind.
#
# --prepare only builds the programs, and shows that they catch nothing in the files as
# they are; --prepared only does the rest.
set -ufo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
limit=300 # s, of a run; a mistake may have one go on for ever
failure=', [1-9][0-9]* failed(, [0-9]+ skipped)?$|Synthesis: .*(Failing|Crashing): [1-9]'

usage() {
	sed -n 's/^# usage: /usage: /p' "${BASH_SOURCE[0]}" >&2
	exit 2
}

mode=all
case ${1:-} in
--prepare | --prepared)
	mode=${1#--}
	shift
	;;
esac
[ $# -ge 2 ] || usage
build=$(cd "$1" && pwd) || exit 2
shift
for name; do
	[ -e "$top/tests/mutants/$name.patch" ] || {
		echo "there is no tests/mutants/$name.patch"
		exit 2
	}
done
export srcdir=$top
cd "$build" && mkdir -p tests/mutants || exit

files_of() { # NAME
	sed -n 's,^--- a/,,p' "$top/tests/mutants/$1.patch"
}

caught_by() { # NAME
	sed -n 's/^caught-by: //p' "$top/tests/mutants/$1.patch"
}

# ask_make PROGRAM...: builds them, and keeps how to compile and how to link each.
ask_make() {
	make generated && make -j"$(nproc)" "$@" &&
		make -s --no-print-directory print-compile >tests/mutants/compile &&
		make -n V=1 -W libulnetcore.a "$@" >tests/mutants/link
}

# link_of PROGRAM AS OBJECT...: the command that links it, with these objects first.
link_of() {
	local program=$1 as=$2

	shift 2
	sed -n "s,^\(.* -o \)$program ,\1$as $* ,p" tests/mutants/link
}

# make_program NAME DIR PATCH: the program that is to catch mistake NAME, with it if
# there is a PATCH.
make_program() {
	local name=$1 dir=$2 patch=$3 file objects=()

	rm -rf "$dir"
	for file in $(files_of "$name"); do
		mkdir -p "$dir/${file%/*}"
		cp "$top/$file" "$dir/$file" || return
		objects+=("$dir/${file%.c}.o")
	done
	[ -z "$patch" ] || patch -d "$dir" -p1 -F1 -f -s -i "$patch" || {
		echo "tests/mutants/$name.patch does not apply: bring it" \
			"up to date"
		return 1
	}
	for file in $(files_of "$name"); do
		eval "$(cat tests/mutants/compile) -w -c -o $dir/${file%.c}.o $dir/$file" ||
			return
	done
	eval "$(link_of "$(caught_by "$name" | cut -d ' ' -f 1)" \
		"$dir/program" "${objects[@]}")" && [ -x "$dir/program" ]
}

# run_program NAME DIR [ARGUMENT...]: with these arguments after those of the patch.
run_program() {
	local dir=$2 arguments

	eval "arguments=($(caught_by "$1"))"
	timeout -k 10 $limit nice "$dir/program" "${arguments[@]:1}" "${@:3}" \
		>"$dir/said" 2>&1 </dev/null
}

# The whole way, but for the mistake: once for each program, and a few seeds.
catches_nothing() { # NAME
	local dir=tests/mutants/without_$1 few=()

	[[ $(caught_by "$1") != *" --seeds "* ]] || few=(--seeds 5)
	make_program "$1" "$dir" "" || return
	run_program "$1" "$dir" "${few[@]}" || {
		tail -n 100 "$dir/said"
		return 1
	}
	rm -rf "$dir"
}

is_caught() { # NAME
	local dir=tests/mutants/$1 status

	make_program "$1" "$dir" "$top/tests/mutants/$1.patch" || return
	run_program "$1" "$dir"
	status=$?
	if [ $status = 1 ] && grep -qE "$failure" "$dir/said"; then
		echo "$1: caught by $(caught_by "$1")"
		rm -rf "$dir"
		return 0
	fi
	tail -n 50 "$dir/said"
	case $status in
	0) echo "$1: NOT caught$(grep -q 'Tested: 0 ' "$dir/said" &&
		echo ': no such test')" ;;
	124 | 137) echo "$1: NOT caught: goes on for $limit s" ;;
	*) echo "$1: NOT caught: ends with status $status without a failure" ;;
	esac
	echo "again with: $build/$dir/program $(caught_by "$1" | cut -d ' ' -s -f 2-)"
	return 1
}

declare -A first=() # of the names, by program
for name; do
	program=$(caught_by "$name" | cut -d ' ' -f 1)
	[ -n "$program" ] || {
		echo "tests/mutants/$name.patch: no line caught-by:"
		exit 2
	}
	: "${first[$program]:=$name}"
done

bad=0
if [ $mode != prepared ]; then
	ask_make "${!first[@]}" >tests/mutants/make.log 2>&1 || {
		tail -n 50 tests/mutants/make.log
		exit 1
	}
fi
if [ $mode = prepare ]; then
	for program in "${!first[@]}"; do
		if catches_nothing "${first[$program]}"; then
			echo "$program: catches nothing in the files as they are"
		else
			echo "$program: FAILS without a mistake"
			bad=1
		fi
	done
	exit $bad
fi
for name; do
	is_caught "$name" || bad=1
done
exit $bad
