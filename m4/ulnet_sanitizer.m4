dnl SPDX-License-Identifier: BSD-3-Clause
dnl Instrumented builds: their flags go to CFLAGS and LDFLAGS, so that every
dnl object and every program has them.

dnl ULNET_TRY_LINK(CFLAGS, PROGRAM, MESSAGE-IF-IMPOSSIBLE)
dnl Adds the flags to CFLAGS and LDFLAGS when PROGRAM links with them. -g1 -O1
dnl take the place of configure's own -g -O2, which need twice the time to compile
dnl instrumented code: it hardly gets faster, and reports need line numbers only.
dnl Of the time with -O1 a half would go into the tests' own code. Programs of LLVM's
dnl linker are as good, and take it a third of the time of GNU's.
AC_DEFUN([ULNET_TRY_LINK], [
	AS_IF([test "$CFLAGS" = "-g -O2"], [CFLAGS="-g1 -O1" TESTS_CFLAGS=${TESTS_CFLAGS--O0}])
	CFLAGS="$CFLAGS $1"
	LDFLAGS="$LDFLAGS $1"
	AC_MSG_CHECKING([whether $CC links with $1])
	AC_LINK_IFELSE([$2],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([$3])])
	ulnet_save_LDFLAGS=$LDFLAGS
	LDFLAGS="$LDFLAGS -fuse-ld=lld"
	AC_MSG_CHECKING([whether $CC links with -fuse-ld=lld])
	AC_LINK_IFELSE([$2],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 LDFLAGS=$ulnet_save_LDFLAGS])
])

AC_DEFUN([ULNET_ENABLE_SANITIZER], [
	AC_ARG_ENABLE([sanitizer],
		[AS_HELP_STRING([--enable-sanitizer=asan|tsan|no],
			[instrument for address and undefined behaviour, or for data races])],
		[], [enable_sanitizer=no])
	AS_CASE([$enable_sanitizer],
		[no], [],
		[asan], [ULNET_TRY_LINK(
			[-fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined],
			[AC_LANG_PROGRAM([], [])],
			[this compiler has no address and undefined sanitizers])],
		[tsan], [ULNET_TRY_LINK(
			[-fno-omit-frame-pointer -fsanitize=thread],
			[AC_LANG_PROGRAM([], [])],
			[this compiler has no thread sanitizer])],
		[AC_MSG_ERROR([--enable-sanitizer: say asan, tsan or no])])
])

dnl A build with fuzzers has no other programs. -fsanitize=fuzzer brings a main()
dnl and is therefore for the programs' link only: FUZZER_LDFLAGS.
AC_DEFUN([ULNET_ENABLE_FUZZERS], [
	AC_ARG_ENABLE([fuzzers],
		[AS_HELP_STRING([--enable-fuzzers],
			[build the fuzz programs and no others (needs clang; implies --enable-sanitizer=asan)])],
		[], [enable_fuzzers=no])
	FUZZER_LDFLAGS=
	AS_IF([test "$enable_fuzzers" != no], [
		AS_CASE([$enable_sanitizer],
			[tsan], [AC_MSG_ERROR([--enable-fuzzers and --enable-sanitizer=tsan exclude each other])],
			[no], [ULNET_TRY_LINK(
				[-fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined],
				[AC_LANG_PROGRAM([], [])],
				[this compiler has no address and undefined sanitizers])
				enable_sanitizer=asan])
		CFLAGS="$CFLAGS -fsanitize=fuzzer-no-link"
		FUZZER_LDFLAGS=-fsanitize=fuzzer
		ulnet_save_LDFLAGS=$LDFLAGS
		LDFLAGS="$LDFLAGS $FUZZER_LDFLAGS"
		AC_MSG_CHECKING([whether $CC links with $FUZZER_LDFLAGS])
		AC_LINK_IFELSE([AC_LANG_SOURCE([[
int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size);
int LLVMFuzzerTestOneInput(const unsigned char *data, unsigned long size)
{
	return !data && size;
}]])],
			[AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])
			 AC_MSG_ERROR([--enable-fuzzers needs clang with its run-time libraries: CC=clang (Debian: clang libclang-rt-dev)])])
		LDFLAGS=$ulnet_save_LDFLAGS
	])
	AC_SUBST([FUZZER_LDFLAGS])
	AM_CONDITIONAL([WITH_FUZZERS], [test "$enable_fuzzers" != no])
])
