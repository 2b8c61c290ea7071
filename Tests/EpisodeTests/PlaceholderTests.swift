internal import Testing

@Suite struct EpisodePlaceholderTests {}
