# SPDX-License-Identifier: BSD-3-Clause
# Counts the results of ./check, prints them, and sums them up. For sourcing; $stage is
# the stage that runs, $logs the folder of logs.

passed=0 failed=0 skipped=0 stage=prepare
failures=() gists=

pass() { # TEXT [NUMBER]
	passed=$((passed + ${2:-1}))
	echo "PASS $stage: $1"
}

skip() { # TEXT REASON
	skipped=$((skipped + 1))
	echo "SKIP $stage: $1: $2"
}

# What a failure looks like in the logs of unit tests, of other tests, campaigns
# and scripts, of sanitizers, compilers and make.
telling='FAIL|^\\[----\\]|not true|BUG|[Aa]ssert|(ERROR|WARNING): |rror: |[*][*][*] '
telling+='|again with|--seed|timed out'

# gist LOG: the lines of LOG that tell of failures, wherever they are, and the end of
# LOG.
gist() {
	sed 's/\x1b\[[0-9;]*m//g' "$1" | cut -c 1-300 | awk -v telling="$telling" '
		{ line[NR] = $0 }
		END {
			for (i = 1; i <= NR - 20; i++)
				if (line[i] ~ telling)
					told[++n] = line[i]
			for (i = n > 20 ? n - 19 : 1; i <= n; i++)
				print told[i]
			if (n)
				print "..."
			for (i = NR > 20 ? NR - 19 : 1; i <= NR; i++)
				print line[i]
		}'
}

# fail TEXT [NUMBER [LOG [COMMAND]]]: the gist of LOG is shown once more at the end,
# with the COMMAND that repeats what failed: by default ./check, with the stage.
fail() {
	local again=${4:-}

	if [ -z "$again" ]; then
		again="./check$([ $long = no ] || echo ' --long')"
		[[ " ${stages[*]} " != *" $stage "* ]] || again+=" --only $stage"
	fi

	failed=$((failed + ${2:-1}))
	failures+=("FAIL $stage: $1" "     again: $again")
	echo "FAIL $stage: $1"
	echo "     again: $again"
	[ -n "${3:-}" ] || return 0
	gists+=$'\n'"==== FAIL $stage: $1"$'\n'$(gist "$3" | sed 's/^/| /')
	echo "---- $3 (last 150 lines)"
	tail -n 150 "$3" | sed 's/^/| /'
	echo "----"
}

# Repeats all failures, for those who see no more than the end of the output.
show_failures() {
	[ ${#failures[@]} -gt 0 ] || return 0
	echo "$gists"
	echo
	printf '%s\n' "${failures[@]}"
}

# took WHAT SINCE: keeps the time that a test took until now, in build/times.
took() {
	awk -v a="$2" -v b="$EPOCHREALTIME" -v what="$stage: $1" \
		'BEGIN { printf "%.1f %s\n", b - a, what }' >>"$BUILD/times"
}

# The tests that took longest; what is built for them does not count.
show_slowest() {
	[ -s "$BUILD/times" ] || return 0
	echo
	echo "---- the ten slowest tests, s (all, and builds: $BUILD/times)"
	grep -vE '^[^:]*: (build|configure|make)' "$BUILD/times" | sort -rn |
		awk 'NR <= 10'
}

# processor_time NAME: seconds that all programs which ended have used, to variable
# NAME.
processor_time() {
	times >"$logs/times"
	printf -v "$1" %.0f "$(awk 'NR == 2 {
		split($1, u, /[ms]/); split($2, s, /[ms]/)
		print 60 * (u[1] + s[1]) + u[2] + s[2]
	}' "$logs/times")"
}

# A piece of work that never changes, of the kind that most of the check is:
# compiling.
yardstick() {
	awk 'BEGIN {
		for (i = 0; i < 100; i++)
			printf "int f%d(int *a, int n) { int s = %d; " \
				"for (int i = 0; i < n; i++) { " \
				"if (a[i] & 1) s += a[i] * %d; else s ^= a[i] << (i & 7); " \
				"switch (s & 3) { case 0: s++; break; case 1: s *= 3; break; " \
				"default: a[i] = s; } } return s; }\n", i, i, i + 7
	}' | CCACHE_DISABLE=1 gcc -O1 -x c -c -o /dev/null -
}

# Does that work once, and keeps the processor time that it took. Processors that
# others use, too, need more time for the same work, as they share caches and cores.
yardstick_try() {
	local TIMEFORMAT='%U %S'

	{ time yardstick; } 2>>"$logs/yardsticks"
}

# judge_need SECONDS LIMIT: fails if what always runs has needed more than LIMIT seconds
# of processor time, on a processor that does the work of yardstick in 0.4 seconds.
judge_need() {
	local same

	same=$(awk -v need="$1" '{ sum += $1 + $2 }
		END { printf "%.0f", need * 0.4 * NR / sum }' "$logs/yardsticks")
	echo "     that is $same s on processors as fast as those it was measured on"
	[ "$same" -le "$2" ] ||
		fail "what always runs needs more than $2 s of processor time"
}

# step WHAT COMMAND...: runs COMMAND, which is one result. Stages run on the left of ||,
# hence without set -e: a stage says itself after which failures it cannot go on.
step() {
	local what=$1 log=$logs/$stage-${1//[^a-zA-Z0-9_.]/_}.log again=
	local since=$EPOCHREALTIME

	shift
	if ("$@") >"$log" 2>&1 </dev/null; then
		took "$what" "$since"
		pass "$what"
	else
		took "$what" "$since"
		# A function has no meaning outside of its stage.
		[ "$(type -t "$1")" = function ] || printf -v again '%q ' "$@"
		fail "$what" 1 "$log" "$again"
		return 1
	fi
}

# at_once WHAT COMMAND WORD...: runs COMMAND WORD for each WORD, as many at once as
# there are cores. Then each is one result, "WHAT WORD".
at_once() {
	local what=$1 command=$2 word said

	shift 2
	[ $# -gt 0 ] || {
		fail "$what: there is nothing to run"
		return 0
	}
	for word; do
		while [ "$(jobs -rp | wc -l)" -ge "$JOBS" ]; do
			wait -n || true
		done
		said=$logs/$stage-${word//[^a-zA-Z0-9_.]/_}
		rm -f "$said.passed"
		{
			since=$EPOCHREALTIME
			"$command" "$word" && touch "$said.passed"
			took "$what $word" "$since"
		} >"$said.txt" 2>&1 </dev/null &
	done
	wait
	for word; do
		said=$logs/$stage-${word//[^a-zA-Z0-9_.]/_}
		if [ -e "$said.passed" ]; then
			pass "$what $word"
		else
			fail "$what $word" 1 "$said.txt"
		fi
	done
}
