// room Acoustics
