internal import Testing

@Suite struct AgentPlaceholderTests {}
