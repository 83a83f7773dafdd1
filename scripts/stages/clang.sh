# SPDX-License-Identifier: BSD-3-Clause
# clang looks at every file that was changed or includes one that was, without making
# code; with --long at all files, and it also builds all that is installed. For sourcing
# by ./check.
stage clang always

# What changes the code of all files.
clang_all='^. (configure\.ac|m4/|Makefile\.am|.*\.(mk|proto)$|scripts/stages/clang\.sh)'

# Every file of C that clang can compile here, by its path in the tree.
clang_sources() {
	local verbs=()

	grep -q '^VERBS_LIBS = .' "$BUILD/release/Makefile" ||
		verbs=(! -path '*/o2iblnd/rdma*' ! -name 'o2ib_verbs.c')
	(cd "$SRC" && find . \( -path ./build -o -path './build-*' -o -path \
		"./${BUILD#"$SRC"/}" \) -prune -o -name '*.c' "${verbs[@]}" \
		! -path '*/peers/*' ! -path '*/install/*' ! -path '*/tally/*' \
		! -path '*/ledger/*' ! -path '*/examples/store/*' -print) |
		sed 's,^\./,,'
}

# clang_touched LIST: of the files that LIST has, a line for each, those that were
# changed; those that include a file that was, as the builds before have written down
# (.Po); and those of which no build has written down what they include.
clang_touched() {
	find "$BUILD"/{asan,release,tsan} -name '*.Po' 2>/dev/null |
		xargs cat /dev/null | awk -v src="$SRC/" '
		FILENAME == ARGV[1] { touched[$2]; next }
		FILENAME == ARGV[3] {
			if (!($0 in known) || $0 in wanted || $0 in touched)
				print
			next
		}
		/^[^ ].*\.o:/ { of = "" }
		{
			for (i = 1; i <= NF; i++) {
				path = $i
				if (index(path, src) == 1)
					path = substr(path, length(src) + 1)
				sub(/^(\.\.\/)+/, "", path)
				if (of == "" && path ~ /\.c$/)
					known[of = path]
				if (of != "" && path in touched)
					wanted[of]
			}
		}' "$touched" - "$1"
}

clang_opinion() {
	local flags list=$logs/clang.files

	flags=$(tree_make release -s --no-print-directory print-flags) || return 1
	clang_sources >"$list"
	[ $long$all != nono ] || is_touched "$clang_all" || {
		clang_touched "$list" >"$list.touched"
		list=$list.touched
	}
	echo "$(wc -l <"$list") files"
	cd "$BUILD/release" && sed "s,^,$SRC/," "$list" |
		xargs -r -d '\n' -n 8 -P "$JOBS" clang -fsyntax-only -Werror \
			-I"$SRC/tests/unit/include" $flags
}

stage_clang() {
	release_build generated || return 0
	step "every file that is concerned" clang_opinion || true
	[ $long = yes ] || return 0
	configure clang clang --enable-werror || return 0
	step "build all" tree_make clang -k all || true
}
