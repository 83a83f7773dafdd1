# For programs that serve the self-test, or are its console.
noinst_LIBRARIES += liblst.a
liblst_a_SOURCES = $(lst_sources)
lst_sources = %D%/lst.c %D%/lst.h %D%/lst_priv.h
lst_sources += %D%/slot.c %D%/frame.c %D%/session.c
lst_sources += %D%/call.c %D%/call.h %D%/console.c
lst_sources += %D%/message.c %D%/message.h
