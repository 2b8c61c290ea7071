// room Episode
