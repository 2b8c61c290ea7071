// room Coordinator
