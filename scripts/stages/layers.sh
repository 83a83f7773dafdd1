# SPDX-License-Identifier: BSD-3-Clause
# What can be seen of the tree without a compiler: dependencies point down, every test
# is in a list, plots are of what was measured. For sourcing by ./check.
stage layers always

# A test that is in no list is never run.
check_lists() {
	local file listed bad=0

	cd "$SRC" || return 1
	listed=$(grep -v '^#' tests/module.mk)
	while read -r file; do
		grep -qE "%D%${file#tests}( |\.c|\$)" <<<"$listed" || {
			echo "$file: not in tests/module.mk"
			bad=1
		}
	done < <(find tests/unit tests/thread tests/lnd tests/sim tests/fuzz \
		tests/vm -name '*.c' | sed 's/\.c$//'
		ls tests/*_check.sh tests/tools/*.sh tests/net/*.sh tests/vm/*.sh)
	while read -r file; do
		[[ " ${stages[*]} " == *" $file "* ]] || {
			echo "scripts/stages/$file.sh: not among the stages of check"
			bad=1
		}
	done < <(ls scripts/stages | sed 's/\.sh$//')
	return $bad
}

# The plots show the numbers in MEASURED.md.
check_plots() {
	mkdir -p "$BUILD/plots" && rm -f "$BUILD"/plots/* &&
		"$SRC/bench/plot" "$BUILD/plots" "$SRC/bench/MEASURED.md" &&
		diff -r "$SRC/bench/plots" "$BUILD/plots"
}

# .clang-format does not break comments. Tabs go to the next multiple of 8.
check_comments() {
	cd "$SRC" && find base bench config examples include lnd lnet names rpc secure \
		services sim tests tools -name '*.[ch]' \
		! -name '*.pb-c.[ch]' -print0 | sort -z | xargs -0 perl -CSD -ne '
			if (m{/\*|^\s*\*}) {
				1 while s/\t/" " x (8 - $-[0] % 8)/e;
				chomp;
				length > 80 or next;
				print "$ARGV:$.: over 80 columns\n";
				$bad = 1;
			}
			close ARGV if eof;
			END { $? = $bad }'
}

# run_test.sh has the one limit of time. A shorter one of a test's own fails where others
# use the processors.
check_limits() {
	! grep -rnE '^(TestSuite|Test|ParameterizedTest)\(.*\.timeout' "$SRC/tests/unit"
}

# The store of objects shows how little a service takes, so it stays short.
check_store() {
	local lines

	lines=$(cat "$SRC"/examples/store/*.{c,h,proto} | wc -l)
	[ "$lines" -le 600 ] || {
		echo "examples/store: $lines lines, more than 600"
		return 1
	}
}

stage_layers() {
	step "all tests are listed" check_lists || true
	step "dependencies point down" "$SRC/scripts/layering.sh" "$SRC" || true
	step "plots of measurements" check_plots || true
	step "comments within 80 columns" check_comments || true
	step "tests have one limit of time" check_limits || true
	step "the store of objects has at most 600 lines" check_store || true
}
