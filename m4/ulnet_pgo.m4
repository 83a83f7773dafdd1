dnl SPDX-License-Identifier: BSD-3-Clause
dnl Profile-guided optimisation. make configures and builds once more, in the folder
dnl training/ with --enable-pgo=train, so that code counts how often it runs; runs
dnl bench/train of that; and takes the counts for the objects of this build (Makefile.am).
dnl With gcc, code that the training does not run is compiled as without a profile.
AC_DEFUN([ULNET_ENABLE_PGO], [
	AC_ARG_ENABLE([pgo],
		[AS_HELP_STRING([--enable-pgo],
			[optimise for how calls run here: make builds twice, and runs bench/train in between])],
		[], [enable_pgo=no])
	AC_ARG_VAR([PROFDATA], [llvm-profdata of the version of clang, for --enable-pgo])
	ulnet_pgo_clang=no
	PROFILE_CFLAGS=
	AS_IF([test "$enable_pgo" != no], [
		AS_IF([test "$cross_compiling" = yes],
			[AC_MSG_ERROR([--enable-pgo runs what it builds: not when cross-compiling])])
		AS_IF([test "$enable_sanitizer$enable_fuzzers" != nono],
			[AC_MSG_ERROR([--enable-pgo and instrumented builds (--enable-sanitizer, --enable-fuzzers) exclude each other])])
		dnl A tree that is configured in place cannot be configured elsewhere, too.
		AS_IF([test -e "$srcdir/config.status" || test "$srcdir" = .],
			[AC_MSG_ERROR([--enable-pgo builds twice: run configure in a folder of its own, as in README.md])])
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#ifndef __clang__
#error
#endif
]], [])], [ulnet_pgo_clang=yes], [ulnet_pgo_clang=no])
	])
	AS_CASE([$enable_pgo],
		[no], [],
		[train], [CFLAGS="$CFLAGS -fprofile-generate -fprofile-update=prefer-atomic"],
		[yes], [ULNET_USE_PROFILE],
		[AC_MSG_ERROR([--enable-pgo takes no value])])
	AC_SUBST([PROFILE_CFLAGS])
	AM_CONDITIONAL([WITH_PGO], [test "$enable_pgo" = yes])
	AM_CONDITIONAL([WITH_PROFDATA], [test "$ulnet_pgo_clang" = yes])
])

dnl Sets PROFDATA, unless the user has, to what clang has beside it, or to what its
dnl version is called in distributions that have several.
AC_DEFUN([ULNET_FIND_PROFDATA], [
	AS_IF([test -z "$PROFDATA"], [
		PROFDATA=`$CC -print-prog-name=llvm-profdata`
		AS_IF([$PROFDATA merge --help >/dev/null 2>&1], [],
			[PROFDATA=llvm-profdata-`$CC -dumpversion | sed 's/\..*//'`])
	])
	AC_MSG_CHECKING([for llvm-profdata])
	AS_IF([$PROFDATA merge --help >/dev/null 2>&1],
		[AC_MSG_RESULT([$PROFDATA])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([--enable-pgo with clang needs llvm-profdata of the same version (Debian: llvm), beside clang or as PROFDATA: there is no $PROFDATA])])
])

dnl A program that counts, with CFLAGS as they are; its counts; and a program by them.
dnl Other versions than clang's read no counts, or write what clang does not read.
AC_DEFUN([ULNET_TRY_PROFDATA], [
	AC_MSG_CHECKING([whether $PROFDATA reads what programs of $CC count])
	AC_LANG_CONFTEST([AC_LANG_PROGRAM([], [])])
	AS_IF([{ $CC $CFLAGS $LDFLAGS -o conftest$EXEEXT conftest.c &&
		 LLVM_PROFILE_FILE=conftest.profraw ./conftest$EXEEXT &&
		 $PROFDATA merge -o conftest.profdata conftest.profraw &&
		 $CC $ulnet_save_CFLAGS -fprofile-use=conftest.profdata -c -o conftest.o conftest.c; } >&AS_MESSAGE_LOG_FD 2>&1],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([--enable-pgo with clang needs llvm-profdata of the same version (Debian: llvm): $PROFDATA is of another one, see config.log])])
	rm -f conftest.c conftest.o conftest$EXEEXT conftest.profraw conftest.profdata
])

dnl Can the compiler do all that is needed? Sources that were changed since the training
dnl are no error: make clean, and the next make trains again.
AC_DEFUN([ULNET_USE_PROFILE], [
	AS_IF([test "$ulnet_pgo_clang" = yes], [
		ULNET_FIND_PROFDATA
		ulnet_pgo_flags="-fprofile-use=training/train.profdata -Wno-profile-instr-unprofiled -Wno-error=profile-instr-out-of-date -Wno-error=backend-plugin"
	], [
		dnl What is said of code that was put together by the profile is shown, but
		dnl with --enable-werror, too, it is no error.
		ulnet_pgo_flags="-fprofile-use -fprofile-partial-training -Wno-missing-profile -Wno-error=coverage-mismatch -Wno-error=maybe-uninitialized -Wno-error=array-bounds -Wno-error=stringop-overflow"
	])
	ulnet_save_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS -fprofile-generate -fprofile-update=prefer-atomic"
	AC_MSG_CHECKING([whether $CC makes programs that count (-fprofile-generate)])
	AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
		[AC_MSG_RESULT([yes])],
		[AC_MSG_RESULT([no])
		 AC_MSG_ERROR([--enable-pgo needs gcc 10 or later, or clang with its run-time libraries (Debian: libclang-rt-dev)])])
	AS_IF([test "$ulnet_pgo_clang" = yes], [ULNET_TRY_PROFDATA])
	CFLAGS=$ulnet_save_CFLAGS
	AS_IF([test "$ulnet_pgo_clang" = no], [
		CFLAGS="$CFLAGS $ulnet_pgo_flags"
		AC_MSG_CHECKING([whether $CC accepts -fprofile-partial-training])
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
			[AC_MSG_RESULT([yes])],
			[AC_MSG_RESULT([no])
			 AC_MSG_ERROR([--enable-pgo needs gcc 10 or later, or clang])])
	])
	dnl clang fails where there is no profile: only what waits for it asks for it.
	AS_IF([test "$ulnet_pgo_clang" = yes],
		[CFLAGS=$ulnet_save_CFLAGS
		 PROFILE_CFLAGS=$ulnet_pgo_flags],
		[CFLAGS="$ulnet_save_CFLAGS $ulnet_pgo_flags"])
])
