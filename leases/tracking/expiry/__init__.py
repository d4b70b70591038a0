"""When phases turn: deadlines, the clock, and the times in which nothing may expire."""
