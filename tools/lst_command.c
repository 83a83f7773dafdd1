/* SPDX-License-Identifier: BSD-3-Clause */
#include "lst_command.h"

#include <stddef.h>

const struct lst_command lst_commands[] = {
	{ "new_session", "[--force] [--timeout S] [NAME]", true, true,
	  lst_new_session },
	{ "end_session", "", false, true, lst_end_session },
	{ "show_session", "", false, false, lst_show_session },
	{ "add_group", "NAME NIDS...", false, true, lst_add_group },
	{ "del_group", "NAME", false, true, lst_del_group },
	{ "update_group", "--refresh|--clean STATE|--remove NIDS NAME", false,
	  true, lst_update_group },
	{ "list_group",
	  "[--all] [--active] [--busy] [--down] [--unknown] [NAME]", false,
	  false, lst_list_group },
	{ "add_batch", "NAME", false, false, lst_add_batch },
	{ "list_batch", "[NAME]", false, false, lst_list_batch },
	{ "add_test",
	  "[--batch NAME] [--loop N] [--concurrency N]\n"
	  "               [--distribute C:S] --from GROUP --to GROUP TEST",
	  false, true, lst_add_test },
	{ "run", "[--wait] [--timeout S] [BATCH]", false, true, lst_run },
	{ "stop", "[--force] [BATCH]", false, true, lst_stop },
	{ "query", "[--test N] [--server] [--timeout S] [BATCH]", false, true,
	  lst_query },
	{ "ping",
	  "[--session] [--group NAME] [--nodes NIDS]\n"
	  "               [--batch NAME [--server]] [--timeout S]",
	  false, true, lst_ping },
	{ "stat",
	  "[--rate] [--bw] [--read] [--write] [--avg] [--min] [--max]\n"
	  "               [--mbs] [--delay S] [--count N] [--timeout S] "
	  "GROUP|NIDS...",
	  false, true, lst_stat },
	{ "show_error", "[--session] [--timeout S] GROUP|NIDS...", false, true,
	  lst_show_error },
	{ 0 },
};
