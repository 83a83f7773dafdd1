# SPDX-License-Identifier: BSD-3-Clause
# clang looks at every file, without making code; with --long it also builds all that is
# installed. For sourcing by ./check.
stage clang always

clang_opinion() {
	local flags verbs=()

	flags=$(tree_make release -s --no-print-directory print-flags) || return 1
	grep -q '^VERBS_LIBS = .' "$BUILD/release/Makefile" ||
		verbs=(! -path '*/o2iblnd/rdma*' ! -name 'o2ib_verbs.c')
	cd "$BUILD/release" && find "$SRC" \( -path "$BUILD" -o -path "$SRC/build" \
		-o -path "$SRC/build-*" \) -prune -o -name '*.c' "${verbs[@]}" \
		! -path '*/peers/*' ! -path '*/install/*' ! -path '*/tally/*' \
		! -path '*/ledger/*' ! -path '*/examples/store/*' -print0 |
		xargs -0 -n 8 -P "$JOBS" clang -fsyntax-only -Werror $flags
}

stage_clang() {
	release_build generated || return 0
	step "every file" clang_opinion || true
	[ $long = yes ] || return 0
	configure clang clang --enable-werror || return 0
	step "build all" tree_make clang -k all || true
}
