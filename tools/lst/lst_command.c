/* SPDX-License-Identifier: BSD-3-Clause */
#include "lst_command.h"

#include <stddef.h>

const struct lst_command lst_commands[] = {
	{ "new_session", "[--force] [--timeout S] [NAME]", true, true,
	  lst_new_session, false },
	{ "end_session", "", false, true, lst_end_session, false },
	{ "show_session", "", false, false, lst_show_session, true },
	{ "add_group", "NAME NIDS...", false, true, lst_add_group, false },
	{ "del_group", "NAME", false, true, lst_del_group, false },
	{ "update_group", "--refresh|--clean STATE|--remove NIDS NAME", false,
	  true, lst_update_group, false },
	{ "list_group",
	  "[--all] [--active] [--busy] [--down] [--unknown] [NAME]", false,
	  false, lst_list_group, true },
	{ "add_batch", "NAME", false, false, lst_add_batch, false },
	{ "list_batch", "[NAME]", false, false, lst_list_batch, true },
	{ "add_test",
	  "[--batch NAME] [--loop N] [--concurrency N]\n"
	  "               [--distribute C:S] --from GROUP --to GROUP TEST",
	  false, true, lst_add_test, false },
	{ "run", "[--wait] [--timeout S] [BATCH]", false, true, lst_run,
	  false },
	{ "stop", "[--force] [BATCH]", false, true, lst_stop, false },
	{ "query", "[--test N] [--server] [--timeout S] [BATCH]", false, true,
	  lst_query, true },
	{ "ping",
	  "[--session] [--group NAME] [--nodes NIDS]\n"
	  "               [--batch NAME [--server]] [--timeout S]",
	  false, true, lst_ping, true },
	{ "stat",
	  "[--rate] [--bw] [--read] [--write] [--avg] [--min] [--max]\n"
	  "               [--mbs] [--delay S] [--count N] [--timeout S] "
	  "GROUP|NIDS...",
	  false, true, lst_stat, true },
	{ "show_error", "[--session] [--timeout S] GROUP|NIDS...", false, true,
	  lst_show_error, true },
	{ 0 },
};
