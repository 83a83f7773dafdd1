# SPDX-License-Identifier: BSD-3-Clause
# Files that need neither clock, log nor loop: in libulnet and in libulrpc.
libulnetbase_a_SOURCES += \
	%D%/backoff.h %D%/backoff.c \
	%D%/buf.h \
	%D%/door.h %D%/door.c \
	%D%/fork.h %D%/fork.c \
	%D%/fsm.h \
	%D%/hash.h %D%/hash.c \
	%D%/heap.h %D%/heap.c \
	%D%/id.h %D%/id.c \
	%D%/iov.h %D%/iov.c \
	%D%/list.h \
	%D%/metric.h %D%/metric.c \
	%D%/misuse.h %D%/misuse.c \
	%D%/pattern.h %D%/pattern.c \
	%D%/pool.h %D%/pool.c \
	%D%/share.h \
	%D%/siphash.h %D%/siphash.c \
	%D%/stat.h \
	%D%/text.h %D%/text.c \
	%D%/timer.h %D%/timer.c \
	%D%/util.h

# In libulrpc only, which links ISA-L.
libulrpccore_a_SOURCES += %D%/crc32c.c %D%/crc32c.h

libulnetcore_a_SOURCES += \
	%D%/caretaker.h %D%/caretaker.c \
	%D%/commons.h %D%/commons.c \
	%D%/env.h %D%/env_ev.c \
	%D%/cond.h %D%/cond.c \
	%D%/cpus.h %D%/cpus.c \
	%D%/guard.h %D%/guard.c \
	%D%/lobby.h %D%/lobby.c \
	%D%/lockstep.h %D%/lockstep.c \
	%D%/log.h %D%/log.c \
	%D%/loop.h %D%/loop.c \
	%D%/passage.h %D%/passage.c \
	%D%/spin.h %D%/spin.c

# Virtual time: in libulnetlab.
libulnetlabcore_a_SOURCES += %D%/env_sim.c
