// room SyncServer
