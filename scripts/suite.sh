# SPDX-License-Identifier: BSD-3-Clause
# The builds that stages share, and the tests that make runs in them. For sourcing.

# configure NAME CC [ARGUMENT...]: a build that has unit tests.
configure() {
	local name=$1 cc=$2 CONFIG_CACHE=$BUILD/config.cache.$2

	shift 2
	step "configure ($cc)" tree_configure "$name" CC="$cc" "$@" || return 1
	grep -q '^CRITERION_LIBS = .' "$BUILD/$name/Makefile" || {
		# It may be installed by the next time: configures again then.
		rm -f "$BUILD/$name/configured-as"
		fail "criterion not found: unit tests cannot be built"
		return 1
	}
}

tests_cflags="-g1 -O1" # half the time of -g -O2

# The build that is released. Stage install installs it in a folder of BUILD.
release_configure() {
	configure release gcc --enable-werror --prefix="$BUILD/installed" \
		TESTS_CFLAGS="$tests_cflags"
}

release_build() { # [TARGET...]
	release_configure || return 1
	step "build ${*:-all}" tree_make release -k "${@:-all}"
}

# The libraries and the fuzz programs, which only clang can build.
fuzz_build() {
	configure fuzz clang --enable-werror --enable-fuzzers || return 1
	step "build" tree_make fuzz -k all
}

complaints='(ERROR|WARNING): (Address|Leak|Thread)Sanitizer|: runtime error: '

# suite BUILD TARGET [ARGUMENT...]: make TARGET in that build, and one result per
# test; a program of unit tests counts with the number of tests in it. There are more
# of them at once than there are cores, because many wait most of their time.
suite() {
	local dir=$BUILD/$1 target=$2 log=$logs/$stage-$2.log status=0
	local before=$((passed + failed + skipped)) failed_before=$failed trs

	find "$dir" -name '*.trs' -delete
	rm -rf "$dir/times"
	mkdir -p "$dir/times"
	JOBS=$((2 * JOBS)) tree_make "$1" -k "${@:2}" >"$log" 2>&1 </dev/null ||
		status=$?
	while read -r trs; do
		suite_result "$dir" "${trs%.trs}"
	done < <(find "$dir" -name '*.trs' | LC_ALL=C sort)
	suite_times "$dir" >>"$BUILD/times"
	if [ $status != 0 ] && [ $failed = "$failed_before" ]; then
		fail "make $target" 1 "$log"
	elif [ $((passed + failed + skipped)) = $before ]; then
		fail "make $target ran no tests"
	fi
}

# suite_result DIR TEST: the results that TEST.trs and TEST.log tell.
suite_result() {
	local dir=$1 test=$2 name=${2#"$1"/} said tested good

	said=$(sed 's/\x1b\[[0-9;]*m//g' "$test.log" |
		grep -oE 'Tested: [0-9]+ \| Passing: [0-9]+' | tail -n 1) || said=
	read -r tested good < <(sed -E 's/[^0-9]+/ /g' <<<"${said:-1 0}")
	case $(sed -n 's/^:test-result: *//p' "$test.trs") in
	PASS | XFAIL)
		# A program goes on after some of what sanitizers find.
		if grep -qE "$complaints" "$test.log"; then
			fail "$name: a sanitizer complains" 1 "$test.log" \
				"$(suite_again "$dir" "$name")"
		elif [[ -z $said && $name == tests/unit/* ]]; then
			fail "$name: says not how many tests it ran" 1 "$test.log"
		elif [ -z "$said" ]; then
			pass "$name"
		elif [ "$tested" -gt 0 ]; then
			pass "$name ($tested tests)" "$tested"
		else
			fail "$name: no tests in it"
		fi
		;;
	SKIP)
		skip "$name" "$(grep -v '^SKIP ' "$test.log" | tail -n 1)"
		;;
	*)
		# More may be wrong than the program could say.
		[ "$tested" -gt "$good" ] || tested=$((good + 1))
		[ "$good" = 0 ] || pass "$name ($good tests)" "$good"
		fail "$name" $((tested - good)) "$test.log" \
			"$(suite_again "$dir" "$name")"
		;;
	esac
}

# suite_again DIR NAME: the command that repeats the test, in the environment that it
# had; of a program of unit tests, only those tests in it that failed.
suite_again() {
	local dir=$1 name=$2 bad set="srcdir=$SRC" variable

	for variable in ULNET_LONG RUN_UNDER {A,L,T,UB}SAN_OPTIONS; do
		[ -z "${!variable:-}" ] || set+=" $variable='${!variable}'"
	done

	bad=$(sed 's/\x1b\[[0-9;]*m//g' "$dir/$name.log" |
		sed -nE 's/^\[(FAIL|----)\] ([a-zA-Z0-9_]+)::([a-zA-Z0-9_]+):.*/\2\/\3/p' |
		sort -u | paste -sd '|')
	if [ -n "$bad" ]; then
		echo "(cd $dir && $set $name --filter '@($bad)')"
	elif [ -e "$dir/$name" ]; then
		echo "(cd $dir && $set bash $SRC/tests/run_test.sh ./$name)"
	else
		echo "(cd $dir && $set bash $SRC/tests/run_test.sh $SRC/$name.sh)"
	fi
}

# suite_times DIR: the times of all tests that ran there, unit tests one by one.
suite_times() {
	local file

	for file in "$1"/times/*; do
		[ ! -e "$file" ] || [ -e "${file%.s}.units" ] ||
			sed "s/ / $stage: /" "$file"
	done
}
