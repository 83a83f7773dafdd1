# Programs that serve the self-test, or drive it, need nothing else of services/.
noinst_LIBRARIES += liblst.a
liblst_a_SOURCES = $(lst_sources)
lst_sources = %D%/lst.c %D%/lst.h %D%/lst_priv.h
lst_sources += %D%/slot.c %D%/frame.c %D%/session.c %D%/unit.c
lst_sources += %D%/call.c %D%/call.h
lst_sources += %D%/console.c %D%/console.h
lst_sources += %D%/md.c %D%/md.h
lst_sources += %D%/data.c %D%/data.h
lst_sources += %D%/message.c %D%/message.h
