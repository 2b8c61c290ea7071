internal import Testing

@Suite struct CoordinatorPlaceholderTests {}
