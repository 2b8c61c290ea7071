internal import Testing

@Suite struct SyncServerPlaceholderTests {}
