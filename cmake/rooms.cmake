# The house plan: each room names the rooms it may include. tools/check_rooms.py (run as a test) fails on any
# other include.
# Rooms marked paper never see torch.
set(SYNCOPATE_ROOMS base record spec text corpora lifeline network emulation sim plan report watch tensor gpu comm codec nn data optim parallel train tasks
                    run library lab cli)
# Rooms that read, write and compose; what computes is elsewhere.
set(SYNCOPATE_COLD_ROOMS record spec lifeline network report watch tasks run library lab cli)
set(SYNCOPATE_PAPER_ROOMS base record spec text corpora lifeline network emulation sim plan report watch)
# Rooms whose sources are compiled several at a time, which halves what they cost: what stands in their unnamed
# namespaces has a name of its own in the room.
set(SYNCOPATE_JOINED_ROOMS record spec text corpora emulation sim plan report tensor data optim parallel train tasks run library lab
                           cli)

set(ROOM_base "")
set(ROOM_record base)
set(ROOM_spec base record)
set(ROOM_text base)
set(ROOM_corpora base text)
set(ROOM_lifeline base)
set(ROOM_network base corpora)
set(ROOM_emulation base network)
set(ROOM_sim base record spec network)
set(ROOM_plan base record spec network sim)
set(ROOM_report base record spec)
set(ROOM_watch base)
set(ROOM_tensor base)
set(ROOM_gpu base tensor)
set(ROOM_comm base lifeline tensor gpu)
set(ROOM_codec base tensor)
set(ROOM_nn base tensor gpu)
set(ROOM_data base text corpora tensor)
set(ROOM_optim base tensor gpu)
set(ROOM_parallel base tensor gpu comm codec nn optim)
set(ROOM_train base record corpora tensor comm data nn optim parallel)
set(ROOM_tasks base record spec text corpora tensor comm nn data train)
set(ROOM_run base record spec lifeline network emulation sim tensor gpu comm codec nn data optim parallel train tasks)
set(ROOM_library base spec tensor comm codec nn data optim parallel train run)
set(ROOM_lab base record spec network sim plan run)
set(ROOM_cli base record spec text network emulation sim plan report watch lifeline tasks run lab)
