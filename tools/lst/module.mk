# Everything but main(), also linked by a test that runs the commands on a node
# of its own.
lst_commands = %D%/lst_command.c %D%/lst_command.h
lst_commands += %D%/lst_group.c %D%/lst_batch.c %D%/lst_stat.c
lst_commands += %D%/lst_nodes.c
lst_commands += %D%/lst_state.c

tools_bin_lst_SOURCES = %D%/lst.c $(lst_commands)
tools_bin_lst_LINK = $(INSTALLED_LINK)
tools_bin_lst_LDADD = libtools.a liblst.a $(libulrpc) $(libulnetctl)
