# SPDX-License-Identifier: BSD-3-Clause
libulnetcore_la_SOURCES += \
	%D%/buf.h \
	%D%/env.h %D%/env_ev.c %D%/env_sim.c \
	%D%/fsm.h %D%/fsm.c \
	%D%/hash.h %D%/hash.c \
	%D%/id.h %D%/id.c \
	%D%/iov.h %D%/iov.c \
	%D%/list.h \
	%D%/log.h %D%/log.c \
	%D%/loop.h %D%/loop.c \
	%D%/mailbox.h %D%/mailbox.c \
	%D%/mutation.h %D%/mutation.def %D%/mutation.c \
	%D%/pool.h %D%/pool.c \
	%D%/stat.h \
	%D%/timer.h %D%/timer.c \
	%D%/util.h
